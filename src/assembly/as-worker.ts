import type { Config, ServiceConfig } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'
import { type Gateway, type GatewayOptions, startGateway } from '../gateway.ts'
import type { WorkerLink } from '../workers/worker-link.ts'
import { fromHanded, type HandedConfig } from './handed-config.ts'
import type { WorkerSettings } from './start-workers.ts'

/** Embedded upstreams live in the parent, so that all workers ask the same ones. */
const withOrigins = (config: Config, { embedded, port }: WorkerSettings): Config => ({
  ...config,
  listen: { ...config.listen, port },
  services: config.services.map((service): ServiceConfig => {
    const origin = embedded[service.name]
    if (origin === undefined || service.contract === 'open') return service
    return { ...service, upstream: { ...service.upstream, targets: [origin] } } as ServiceConfig
  }),
})

/** The configuration that a worker was handed by its parent, as all others have it. */
export const handedConfig = (link: WorkerLink): ConfigResult =>
  fromHanded((link.assignment.settings as WorkerSettings).config)

/** Starts a gateway in a process that shares its port with others; it ends when its parent says so. */
export const startAsWorker = async (
  config: Config,
  options: GatewayOptions,
  link: WorkerLink,
): Promise<Gateway> => {
  const settings = link.assignment.settings as WorkerSettings
  const own = (result: ConfigResult): ConfigResult =>
    result.kind === 'ok' ? { ...result, config: withOrigins(result.config, settings) } : result
  let latest = settings.config
  const worker: WorkerLink = {
    ...link,
    onQuestion: (answer) =>
      link.onQuestion((question) => {
        if (question.topic === 'reload') latest = question.content as HandedConfig
        return answer(question)
      }),
  }
  try {
    const gateway = await startGateway(withOrigins(config, settings), {
      ...options,
      readConfig: async () => own(fromHanded(latest)),
      worker,
    })
    link.onDrain(() => {
      void gateway.drain().then((outcome) => process.exit(outcome === 'finished' ? 0 : 1))
    })
    link.ready({ publicAddress: gateway.publicAddress, adminAddress: gateway.adminAddress })
    return gateway
  } catch (error) {
    link.failed(error)
    throw error
  }
}
