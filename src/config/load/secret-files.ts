import { readFile } from 'node:fs/promises'
import { type Path, pathText, type UnplacedFault } from '../fault.ts'
import { secretPaths } from '../schema/shape.ts'
import { valueAt, withValueAt } from './value-at.ts'

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
const largestSecret = 65_536

type SecretReading = {
  readonly value: unknown
  readonly faults: readonly UnplacedFault[]
  readonly files: readonly string[]
}

const readSecret = async (file: string): Promise<{ text: string } | { fault: string }> => {
  if (!file.startsWith('/')) return { fault: 'expected an absolute path: file:/run/secrets/x' }
  try {
    const text = await readFile(file, 'utf8')
    if (text.length > largestSecret) return { fault: `the secret file is larger than ${largestSecret} bytes` }
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

/** Replaces the names of secret files by their content. A file name in any other setting is a fault. */
export const readSecretFiles = async (value: unknown): Promise<SecretReading> => {
  const faults: UnplacedFault[] = []
  const files: string[] = []
  let filled = value
  const paths = secretPaths.flatMap((pattern) => matchingPaths(value, pattern))
  for (const path of paths) {
    const text = valueAt(filled, path)
    if (typeof text !== 'string' || !text.startsWith(prefix)) continue
    const file = text.slice(prefix.length)
    const reading = await readSecret(file)
    if ('fault' in reading) faults.push({ path, message: reading.fault, at: 'value' })
    else {
      files.push(file)
      filled = withValueAt(filled, path, reading.text)
    }
  }
  const secret = new Set(paths.map(pathText))
  const allowed = secretPaths.map(pathText).join(', ')
  for (const path of pathsOfFileTexts(value)) {
    if (secret.has(pathText(path))) continue
    faults.push({ path, message: `only secrets are read from files: ${allowed}`, at: 'value' })
  }
  return { value: filled, faults, files }
}
