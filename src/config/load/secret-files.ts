import { readFile } from 'node:fs/promises'
import { type Path, pathText, type UnplacedFault, valueAt, withValueAt } from '../fault.ts'
import { filePaths, secretPaths } from '../schema/shape.ts'

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'the user of the process may not read it',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
}

/** Why a file cannot be read, with the error code of the system. */
export const unreadableFile = (what: 'file' | `secret file ${string}`, cause: unknown): string => {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no code'
  const reason = reasons[code]
  return `the ${what} cannot be read${reason === undefined ? '' : `, ${reason}`} (${code})`
}

const prefix = 'file:'
const onlySecrets =
  'only secrets are read from files: tokens, keys and certificates, marked "Secret" in docs/configuration.md'
const largestSecret = 65_536
/** A list of keys has a line for each. */
const largestList = 1024 * 1024

type SecretReading = {
  readonly value: unknown
  readonly faults: readonly UnplacedFault[]
  readonly files: readonly string[]
}

const readSecret = async (
  file: string,
  mostCharacters: number,
): Promise<{ text: string } | { fault: string }> => {
  if (!file.startsWith('/')) return { fault: 'expected an absolute path: file:/run/secrets/x' }
  try {
    const text = await readFile(file, 'utf8')
    if (text.length > mostCharacters)
      return { fault: `the secret file is larger than ${mostCharacters} bytes` }
    return { text: text.replace(/\r?\n$/, '') }
  } catch (cause) {
    return { fault: unreadableFile(`secret file ${file}`, cause) }
  }
}

/** Paths of all texts that begin with `file:/`. */
const pathsOfFileTexts = (value: unknown, path: Path = []): Path[] => {
  if (typeof value === 'string') return value.startsWith(`${prefix}/`) ? [path] : []
  if (Array.isArray(value)) return value.flatMap((item, index) => pathsOfFileTexts(item, [...path, index]))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => pathsOfFileTexts(item, [...path, key]))
}

/** The paths in this value that match a pattern. */
const matchingPaths = (value: unknown, [step, ...rest]: Path): Path[] => {
  if (step === undefined) return [[]]
  if (typeof value !== 'object' || value === null) return []
  const steps = step === '*' ? (Array.isArray(value) ? [...value.keys()] : Object.keys(value)) : [step]
  return steps.flatMap((one) => matchingPaths(valueAt(value, [one]), rest).map((path) => [one, ...path]))
}

/** Replaces the names of files by their content. A file name in any other setting is a fault. */
export const readSecretFiles = async (value: unknown): Promise<SecretReading> => {
  const faults: UnplacedFault[] = []
  const files: string[] = []
  let filled = value
  const patterns = [...secretPaths.map((path) => ({ path, always: false })), ...filePaths]
  const found = patterns.flatMap((pattern) =>
    matchingPaths(value, pattern.path).map((path) => ({ path, always: pattern.always })),
  )
  for (const { path, always } of found) {
    const text = valueAt(filled, path)
    if (typeof text !== 'string' || !(always || text.startsWith(prefix))) continue
    const file = text.startsWith(prefix) ? text.slice(prefix.length) : text
    const reading = await readSecret(file, always ? largestList : largestSecret)
    if ('fault' in reading) faults.push({ path, message: reading.fault, at: 'value' })
    else {
      files.push(file)
      filled = withValueAt(filled, path, reading.text)
    }
  }
  const readable = new Set(found.map(({ path }) => pathText(path)))
  for (const path of pathsOfFileTexts(value)) {
    if (readable.has(pathText(path))) continue
    faults.push({ path, message: onlySecrets, at: 'value' })
  }
  return { value: filled, faults, files }
}
