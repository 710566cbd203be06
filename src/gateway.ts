import type { Config } from './config/config.ts'
import { startConfiguration } from './gateway/configuration.ts'
import type { Gateway, GatewayOptions } from './gateway/gateway-options.ts'
import { createGatewayParts } from './gateway/gateway-parts.ts'
import { RunningGateway } from './gateway/running-gateway.ts'
import { freePort } from './server/listener.ts'

export type { Gateway, GatewayOptions }

/** The public port, and the URL that links have: both are known before anything listens. */
const publicAddressOf = async ({ listen, publicUrl }: Config) => {
  const port = listen.port === 0 ? await freePort(listen.host) : listen.port
  return { port, publicUrl: publicUrl.endsWith(':0') ? publicUrl.replace(/0$/, String(port)) : publicUrl }
}

/** Starts a gateway: the parts that outlive configurations, the first configuration snapshot, then both ports. */
export const startGateway = async (config: Config, options: GatewayOptions): Promise<Gateway> => {
  const { port, publicUrl } = await publicAddressOf(config)
  const parts = await createGatewayParts(config, options)
  const reload = await startConfiguration(parts, publicUrl)
  return new RunningGateway(parts, port, reload).run()
}
