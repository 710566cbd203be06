import { readFile } from 'node:fs/promises'
import { isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import {
  type ConfigFault,
  type Path,
  type Position,
  pathText,
  type UnplacedFault,
  unreadableFile,
  valueAt,
  withValueAt,
} from '../fault.ts'
import { filePaths, secretPaths } from '../schema/shape.ts'
import { asNode, documentLocator } from '../yaml-positions.ts'

/** `${NAME}`, `${NAME:-default}`, `$${` for a literal `${`, and a reference without its end. A default contains no closing brace. */
const reference = /\$\$\{|\$\{([^}:]*)(?::-([^}]*))?\}|\$\{(?=[A-Za-z_])/g
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

type Interpolation =
  | { readonly kind: 'text'; readonly text: string }
  /** Contains the variable's name, never a value: it is part of a fault. */
  | { readonly kind: 'fault'; readonly message: string }

/** Replaces references to the environment in one scalar. Values stay text and cannot add YAML structure. */
export const interpolate = (
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): Interpolation => {
  const faults: string[] = []
  const replaced = text.replaceAll(
    reference,
    (whole, name: string | undefined, fallback: string | undefined) => {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference as the file spells it
      if (whole === '${') faults.push('a reference to the environment has no closing brace: ${NAME}')
      if (name === undefined) return '${'
      if (fallback?.includes('${') === true) {
        faults.push(`the default of ${name} contains another reference, which is not possible`)
        return whole
      }
      if (!variableName.test(name)) {
        faults.push('expected a variable name of letters, digits and underscores between the braces')
        return whole
      }
      // As in a shell, the default of `:-` also replaces an empty variable.
      const value = env[name] === '' && fallback !== undefined ? undefined : env[name]
      if (value === undefined && fallback === undefined) {
        faults.push(
          `the environment variable ${name} is not set, and there is no default (\${${name}:-default})`,
        )
      }
      return value ?? fallback ?? ''
    },
  )
  const [first] = faults
  if (first !== undefined) return { kind: 'fault', message: first }
  return { kind: 'text', text: replaced }
}

/** A configuration file parsed as YAML, with the environment filled in. */
export type ConfigSource = {
  readonly value: unknown
  /** Faulty references to the environment. */
  readonly faults: readonly UnplacedFault[]
  /** The position of a key or its value, or of the nearest section above when it is not in the file. */
  locate(path: Path, at: 'key' | 'value'): Position
}

type SourceReading =
  | { readonly kind: 'source'; readonly source: ConfigSource }
  | { readonly kind: 'faults'; readonly faults: readonly ConfigFault[] }

type Document = ReturnType<typeof parseDocument>
export type Environment = Readonly<Record<string, string | undefined>>

const firstPosition: Position = { line: 1, column: 1 }

/** The path of a node, from the ancestors that `visit` passes. */
const pathOf = (key: number | 'key' | 'value' | null, ancestors: readonly unknown[]): Path => {
  const path: (string | number)[] = []
  const chain = [...ancestors]
  chain.forEach((ancestor, index) => {
    const below = chain[index + 1]
    if (isSeq(ancestor)) path.push(below === undefined ? Number(key) : ancestor.items.indexOf(below))
    else if (
      typeof ancestor === 'object' &&
      ancestor !== null &&
      'key' in ancestor &&
      isScalar(ancestor.key)
    ) {
      path.push(String(ancestor.key.value))
    }
  })
  return path
}

/** Replaces references in every text value; keys and comments stay as they are. `__proto__` as a key is a fault. */
const fillEnvironment = (document: Document, env: Environment): UnplacedFault[] => {
  const faults: UnplacedFault[] = []
  visit(document, {
    Pair(key, pair, ancestors) {
      if (!isScalar(pair.key) || pair.key.value !== '__proto__') return
      faults.push({ path: [...pathOf(key, ancestors), '__proto__'], message: 'unknown key', at: 'key' })
    },
    Scalar(key, node, ancestors) {
      if (key === 'key' || typeof node.value !== 'string' || !node.value.includes('${')) return
      const outcome = interpolate(node.value, env)
      if (outcome.kind === 'text') node.value = outcome.text
      else faults.push({ path: pathOf(key, ancestors), message: outcome.message, at: 'value' })
    },
  })
  return faults
}

/** Faults after a fault of the syntax are mostly consequences of it. */
const maxSyntaxFaults = 10

/** The braces of a reference end a flow collection, such as `{ port: ${PORT} }`, unless they are quoted. */
const unquotedReference = /[{[,:][ \t]*(\$\{[^}\s"']*\})/

type SyntaxError = Document['errors'][number] | Document['warnings'][number]

const quoteStar = '"*" begins an alias: put the value in quotes'

/** What to do about frequent faults; others have the words of the parser. */
const remedies: Readonly<Record<string, string>> = {
  BAD_ALIAS: quoteStar,
  BLOCK_AS_IMPLICIT_KEY:
    'a value stands where keys are expected: the next line is indented too far, a list entry ("- ") is among keys, or this value has ": " and must be in quotes',
  BAD_SCALAR_START: 'a value that begins with this character must be in quotes',
  DUPLICATE_KEY: 'this key occurs twice in its section',
  MISSING_CHAR: 'a closing quote or bracket is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must be followed by a colon and a space on the same line',
  TAG_RESOLVE_FAILED: 'a value that begins with "!" must be in quotes: there are no tags',
  TAB_AS_INDENT: 'lines are indented with spaces, not with tabs',
}

const syntaxFault = ({ code, message }: SyntaxError): string => {
  if (code === 'MULTIPLE_DOCS') return 'expected one YAML document, but "---" begins another one'
  // BAD_INDENT and MISSING_CHAR mean two things each.
  if (message.startsWith('Flow')) return 'not YAML: a closing bracket is missing before this line'
  if (code === 'BAD_INDENT' || message.startsWith('Sequence item'))
    return 'not YAML: this line is not indented as the lines of its section'
  return `not YAML: ${remedies[code] ?? message}`
}

/** The position of an alias that names no anchor, which the parser reports without one. */
const unresolvedAlias = (text: string, message: string, lines: LineCounter): ConfigFault | undefined => {
  const [, name] = /^Unresolved alias .*: (.*)$/.exec(message) ?? []
  const at = name === undefined ? -1 : text.indexOf(`*${name}`)
  if (at === -1) return undefined
  const { line, col } = lines.linePos(at)
  return { path: '', line, column: col, message: `not YAML: ${quoteStar}, or define the anchor before it` }
}

/** The first fault of each line, or an unquoted reference alone: the others are mostly consequences of it. */
const syntaxFaults = (text: string, errors: readonly SyntaxError[], lines: LineCounter): ConfigFault[] => {
  const texts = text.split('\n')
  const byLine = new Map<number, ConfigFault>()
  for (const error of errors) {
    const { line, col } = lines.linePos(error.pos[0])
    const fault = { path: '', line, column: col, message: syntaxFault(error) }
    const [, reference] = unquotedReference.exec(texts[line - 1] ?? '') ?? []
    if (reference !== undefined)
      return [{ ...fault, message: `not YAML: inside braces write "${reference}", in quotes` }]
    // A file that is indented with tabs has them in many lines.
    if (error.code === 'TAB_AS_INDENT') return [fault]
    if (!byLine.has(line)) byLine.set(line, fault)
  }
  return [...byLine.values()].slice(0, maxSyntaxFaults)
}

/** Parses the text of a file. Broken YAML gives its faults alone. */
export const readSource = (text: string, env: Environment): SourceReading => {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true })
  const broken = [...document.errors, ...document.warnings]
  if (broken.length > 0) {
    return { kind: 'faults', faults: syntaxFaults(text, broken, lines) }
  }
  const faults = fillEnvironment(document, env)
  try {
    // The limit keeps a few lines of aliases from expanding to gigabytes.
    const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? {}
    return { kind: 'source', source: { value, faults, locate: documentLocator(document, lines) } }
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    const unresolved = unresolvedAlias(text, message, lines)
    const problem = message.startsWith('Excessive alias') ? 'its aliases expand to too much' : message
    const fault = unresolved ?? { path: '', ...firstPosition, message: `not YAML: ${problem}` }
    return { kind: 'faults', faults: [fault] }
  }
}

/** A section of a file that may be broken elsewhere, `{}` where the file has none; undefined: it cannot be read. */
export const readSection = (text: string, env: Environment, name: string): unknown => {
  const document = parseDocument(text, { prettyErrors: false, merge: true })
  const section = isMap(document.contents) ? document.contents.get(name, true) : undefined
  const end = section === undefined ? text.length : (asNode(section)?.range?.[2] ?? text.length)
  // What a fault before its end leaves of it may be anything.
  if (document.errors.some(({ pos }) => pos[0] <= end)) return undefined
  if (fillEnvironment(document, env).some(({ path }) => path[0] === name)) return undefined
  try {
    return asNode(section)?.toJS(document, { maxAliasCount: 100 }) ?? {}
  } catch {
    return undefined
  }
}

const prefix = 'file:'
const onlySecrets =
  'only secrets are read from files: tokens, keys and certificates, marked "Secret" in docs/settings.md'
const largestSecret = 65_536
/** A list of keys has a line for each. */
const largestList = 1024 * 1024

/** A copy of the content of a configuration in which paths are replaced by what their files hold. */
export type FilesReading = {
  readonly value: unknown
  readonly faults: readonly UnplacedFault[]
  readonly files: readonly string[]
}

const readNamedFile = async (
  file: string,
  isSecret: boolean,
): Promise<{ text: string } | { fault: string }> => {
  const maxCharacters = isSecret ? largestSecret : largestList
  if (!file.startsWith('/'))
    return { fault: `expected an absolute path: ${isSecret ? 'file:/run/secrets/x' : '/etc/trellis/x'}` }
  try {
    const text = await readFile(file, 'utf8')
    if (text.length > maxCharacters)
      return { fault: `the ${isSecret ? 'secret ' : ''}file is larger than ${maxCharacters} bytes` }
    return { text: text.replace(/\r?\n$/, '') }
  } catch (cause) {
    return { fault: unreadableFile(isSecret ? `secret file ${file}` : `file ${file}`, cause) }
  }
}

const pathsOfFileTexts = (value: unknown, path: Path = []): Path[] => {
  // The one of a document is refused where documents are read.
  if (path.at(-1) === 'document') return []
  if (typeof value === 'string') return value.startsWith(`${prefix}/`) ? [path] : []
  if (Array.isArray(value)) return value.flatMap((item, index) => pathsOfFileTexts(item, [...path, index]))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => pathsOfFileTexts(item, [...path, key]))
}

const matchingPaths = (value: unknown, [step, ...rest]: Path): Path[] => {
  if (step === undefined) return [[]]
  if (typeof value !== 'object' || value === null) return []
  const steps = step === '*' ? (Array.isArray(value) ? [...value.keys()] : Object.keys(value)) : [step]
  return steps.flatMap((part) => matchingPaths(valueAt(value, [part]), rest).map((path) => [part, ...path]))
}

/** Replaces the names of files by their content. A file name in any other setting is misplaced, or its key is misspelt. */
export const readSecretFiles = async (
  value: unknown,
): Promise<FilesReading & { readonly misplaced: readonly UnplacedFault[] }> => {
  const faults: UnplacedFault[] = []
  const files: string[] = []
  let tree = value
  const patterns = [...secretPaths.map((path) => ({ path, always: false })), ...filePaths]
  const places = patterns.flatMap((pattern) =>
    matchingPaths(value, pattern.path).map((path) => ({ path, always: pattern.always })),
  )
  for (const { path, always } of places) {
    const text = valueAt(tree, path)
    if (typeof text !== 'string' || text === '' || !(always || text.startsWith(prefix))) continue
    const file = text.startsWith(prefix) ? text.slice(prefix.length) : text
    const reading = await readNamedFile(file, !always)
    if ('fault' in reading) faults.push({ path, message: reading.fault, at: 'value' })
    else {
      files.push(file)
      tree = withValueAt(tree, path, reading.text)
    }
  }
  const readable = new Set(places.map(({ path }) => pathText(path)))
  const misplaced = pathsOfFileTexts(value)
    .filter((path) => !readable.has(pathText(path)))
    .map((path): UnplacedFault => ({ path, message: onlySecrets, at: 'value' }))
  return { value: tree, faults, misplaced, files }
}
