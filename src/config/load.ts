import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isJsonObject } from '../http/json-text.ts'
import type { Config } from './config.ts'
import type { ContractConfig } from './contract-config.ts'
import {
  type ConfigFault,
  pathText,
  type UnplacedFault,
  unreadableFile,
  valueAt,
  withoutValueAt,
} from './fault.ts'
import { shapeFaults } from './json-schema.ts'
import { crossChecks } from './load/cross-checks.ts'
import { readDocuments, withDocuments } from './load/documents.ts'
import { resolveConfig } from './load/resolve.ts'
import {
  type ConfigSource,
  type Environment,
  readSecretFiles,
  readSection,
  readSource,
} from './load/source.ts'
import { redactedConfig } from './redacted-config.ts'
import { type ConfigShape, configShape } from './schema/shape.ts'
import { ServiceDocument } from './service-document.ts'

const deepFreeze = <Value>(value: Value): Value => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

const sorted = (_key: string, value: unknown): unknown =>
  isJsonObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value

/**
 * Sixteen hexadecimal digits that identify the meaning of a configuration, independent of its spelling.
 * Secrets are excluded: a short one could be guessed from the hash, which is a metric label.
 */
const configHash = (config: Config): string =>
  createHash('sha256')
    .update(JSON.stringify(redactedConfig(config), sorted))
    .digest('hex')
    .slice(0, 16)

export type ConfigResult =
  | {
      readonly kind: 'ok'
      readonly config: Config
      /** Identifies the configuration in metrics and logs; secrets are excluded. */
      readonly hash: string
      readonly files: readonly string[]
      /** The content of the file with environment, secrets and documents filled in. */
      readonly filled: unknown
    }
  /** Every fault at once, in the order of the file. */
  | { readonly kind: 'faults'; readonly faults: readonly ConfigFault[] }

const isUnder = ({ path, beside = path }: UnplacedFault, faults: readonly UnplacedFault[]): boolean =>
  [path, beside].some((place) =>
    faults.some((fault) => `${pathText(place)}.`.startsWith(`${pathText(fault.path)}.`)),
  )

/**
 * The file without its faulty values, so that the checks across values still run.
 * Where a removed value is required, its section is removed next.
 */
const withoutFaults = (value: unknown, faults: readonly UnplacedFault[]): ConfigShape | undefined => {
  let readable = value
  let paths = faults.map(({ path }) => path)
  for (let round = 0; round < 4; round += 1) {
    readable = paths.reduce(
      (tree: unknown, path) =>
        withoutValueAt(tree, valueAt(tree, path) === undefined ? path.slice(0, -1) : path),
      readable,
    )
    const result = configShape.safeParse(readable)
    if (result.success) return result.data
    paths = result.error.issues.map((issue) => issue.path as (string | number)[])
  }
  return undefined
}

const withPosition = (source: ConfigSource, { path, at, ...fault }: UnplacedFault): ConfigFault => ({
  path: pathText(path),
  ...source.locate(path, at),
  message: fault.message,
  ...(fault.suggestion === undefined ? {} : { suggestion: fault.suggestion }),
})

const inFileOrder = (a: ConfigFault, b: ConfigFault): number => a.line - b.line || a.column - b.column

/** Checks the text of a configuration file; paths of documents are relative to `folder`. */
export const checkConfig = async (
  contracts: ContractConfig,
  text: string,
  env: Environment,
  folder = '.',
): Promise<ConfigResult> => {
  const reading = readSource(text, env)
  if (reading.kind === 'faults') return reading
  const { source } = reading
  const secrets = await readSecretFiles(source.value)
  const documents = await readDocuments(secrets.value, folder, contracts)
  // A document that could not be read has no value to check.
  const unread = documents.faults.map(({ path }) => path)
  const tree = unread.reduce(withoutValueAt, documents.value)
  const result = configShape.safeParse(tree)
  const schemaFaults = result.success ? [] : shapeFaults(result.error.issues, tree)
  // A key that does not exist says more than the value below it.
  const keyFaults = schemaFaults.filter(({ at }) => at === 'key')
  const readingFaults = [
    ...source.faults,
    ...secrets.faults,
    ...documents.faults,
    ...secrets.misplaced.filter((fault) => !isUnder(fault, keyFaults)),
  ]
  // A value with a fault of reading gets no second fault from the schema.
  const valueFaults = [...readingFaults, ...schemaFaults.filter((fault) => !isUnder(fault, readingFaults))]
  const shape = result.success ? result.data : withoutFaults(tree, valueFaults)
  const config = shape === undefined ? undefined : resolveConfig(shape, contracts)
  const across =
    shape === undefined || config === undefined ? [] : [...crossChecks(config, shape.services, contracts)]
  const faults = [...valueFaults, ...across.filter((fault) => !isUnder(fault, valueFaults))]
  if (config === undefined || faults.length > 0) {
    return { kind: 'faults', faults: faults.map((fault) => withPosition(source, fault)).sort(inFileOrder) }
  }
  const files = [...secrets.files, ...documents.files]
  return { kind: 'ok', config: deepFreeze(config), hash: configHash(config), files, filled: tree }
}

/** The content of a checked configuration, for `configFromData` in another process. */
export const filledAsData = (tree: unknown): unknown =>
  withDocuments(tree, (document) => (document instanceof ServiceDocument ? document.data : document))

/** The configuration from content that another process has read and checked. */
export const configFromData = (contracts: ContractConfig, data: unknown): ConfigResult => {
  const tree = withDocuments(data, (document) =>
    typeof document === 'string' ? contracts.documentFrom(document) : document,
  )
  const config = deepFreeze(resolveConfig(configShape.parse(tree), contracts))
  return { kind: 'ok', config, hash: configHash(config), files: [], filled: tree }
}

/** Reads and checks a configuration file; without a file, the defaults hold. */
export const loadConfig = async (
  contracts: ContractConfig,
  from: { readonly file: string | undefined; readonly env: Environment },
): Promise<ConfigResult> => {
  if (from.file === undefined) return checkConfig(contracts, '{}', from.env)
  try {
    const result = await checkConfig(
      contracts,
      await readFile(from.file, 'utf8'),
      from.env,
      dirname(from.file),
    )
    return result.kind === 'ok' ? { ...result, files: [from.file, ...result.files] } : result
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause)) throw cause
    const message = unreadableFile('file', cause)
    return { kind: 'faults', faults: [{ path: '', line: 1, column: 1, message }] }
  }
}

/** The section `admin` of a file that has faults elsewhere; undefined where it cannot be read. */
export const readAdminSection = async (
  file: string,
  env: Environment,
): Promise<Config['admin'] | undefined> => {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  const section = text === undefined ? undefined : readSection(text, env, 'admin')
  if (section === undefined) return undefined
  const { value, faults, misplaced } = await readSecretFiles({ admin: section })
  const result = configShape.shape.admin.safeParse(valueAt(value, ['admin']))
  return result.success && faults.length + misplaced.length === 0 ? result.data : undefined
}
