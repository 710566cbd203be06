import { faultText } from './config/fault.ts'
import { isJsonObject } from './http/json-text.ts'
/** A configuration as it stands in the file, as plain data; sections that are not given have their defaults. */
export type GatewaySettings = { readonly [section: string]: unknown }

/** Settings that differ for a test; the rest has the defaults of the file. */
const forTests: GatewaySettings = {
  listen: { port: 0 },
  admin: { port: 0 },
  log: { level: 'silent' },
  drain: { delay: '0s', timeout: '5s' },
}

export type RunningGateway = {
  /** Origin of the public side, such as `http://127.0.0.1:40123`. */
  readonly url: string
  /** Origin of the admin side: metrics, health, purge. */
  readonly adminUrl: string
  /** Applies other settings as a reload of the file does; rejects if they have faults or need a restart. */
  reload(settings: GatewaySettings): Promise<void>
  /** Finishes the requests in flight and closes everything. */
  close(): Promise<void>
}

/** The settings with those for tests where they give nothing else. */
const completed = (settings: GatewaySettings): GatewaySettings => {
  const whole: Record<string, unknown> = { ...settings }
  for (const [name, values] of Object.entries(forTests)) {
    const given = settings[name]
    if (given === undefined) whole[name] = values
    else if (isJsonObject(given) && isJsonObject(values)) whole[name] = { ...values, ...given }
  }
  return whole
}

/**
 * Starts a gateway in this process, for the tests of another project. It listens on free ports of 127.0.0.1 and logs nothing unless the
 * settings say otherwise. Rejects with all faults of the settings.
 */
export const startGateway = async (
  settings: GatewaySettings,
  env: { readonly [name: string]: string | undefined } = {},
): Promise<RunningGateway> => {
  const [{ checkConfig }, gateways] = await Promise.all([
    import('./gateway/load-config.ts'),
    import('./gateway.ts'),
  ])
  let current = settings
  // JSON is YAML.
  const readConfig = () => checkConfig(JSON.stringify(completed(current)), env)
  const checked = await readConfig()
  if (checked.kind === 'faults') {
    throw new Error(['the settings have faults:', ...checked.faults.map(faultText)].join('\n'))
  }
  const gateway = await gateways.startGateway(checked.config, {
    configHash: checked.hash,
    version: 'test',
    readConfig,
  })
  return {
    url: gateway.publicAddress,
    adminUrl: gateway.adminAddress,
    reload: async (next) => {
      const last = current
      current = next
      const outcome = await gateway.reload()
      if (outcome.kind === 'applied' || outcome.kind === 'unchanged') return
      current = last
      const details =
        outcome.kind === 'invalid' ? outcome.faults : outcome.kind === 'restart-needed' ? outcome.keys : []
      throw new Error([`the settings were not applied: ${outcome.kind}`, ...details].join('\n'))
    },
    close: () => gateway.close(),
  }
}
