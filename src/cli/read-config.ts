import type { ConfigFault } from '../config/fault.ts'
import type { ConfigResult } from '../config/load.ts'
import { loadConfig } from '../config/load.ts'
import type { CliPorts } from './cli-ports.ts'

export type NamedConfig = { readonly file: string | undefined; readonly result: ConfigResult }

/** Takes the configuration that was handed over, or reads the one that the command line, the environment or the default file names, in this order. */
export const readConfig = async (
  named: string | undefined,
  { env, defaultFile, given }: Pick<CliPorts, 'env' | 'defaultFile' | 'given'>,
): Promise<NamedConfig> => {
  // An empty TRELLIS_CONFIG is what a container passes on when nothing is set.
  const fromEnvironment = env['TRELLIS_CONFIG'] === '' ? undefined : env['TRELLIS_CONFIG']
  const file = named ?? fromEnvironment ?? defaultFile
  return { file, result: given ?? (await loadConfig({ file, env })) }
}

/** How a configuration is called in messages. */
export const configName = (file: string | undefined): string => file ?? '(defaults)'

/** One line a fault, and how many there are. */
export const faultLines = (file: string | undefined, faults: readonly ConfigFault[]): string => {
  const lines = faults.map(({ line, column, path, message, suggestion }) => {
    const hint = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`
    const key = path === '' ? '' : `${path}: `
    return `${configName(file)}:${line}:${column} ${key}${message}${hint}\n`
  })
  return `${lines.join('')}${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}\n`
}
