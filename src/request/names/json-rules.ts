import { backslash } from '../../http/json-text.ts'
import { contentText } from '../../http/message.ts'
import type { NameSwap } from '../name-swap.ts'
import { type StringRules, type ValueKind, valueKinds } from './json-scanner.ts'
import { mapLinkValue, mapPath, maxUrlLength, type RestUrls } from './urls.ts'

/** Route patterns in a discovery document; the longest that WordPress 6.9 has is 108 characters. */
const maxPatternLength = 2048

/** A character of a key may be written in six: `\u005f`. */
const escapedLength = 6

type KeyRule = { readonly text: string | undefined; readonly opens: ValueKind }

/** Keys whose values are names, in discovery documents, types and taxonomies. */
const namingKeys: Readonly<Record<string, ValueKind>> = {
  routes: valueKinds.routes,
  namespaces: valueKinds.namespace,
  namespace: valueKinds.namespace,
  rest_namespace: valueKinds.namespace,
  rest_base: valueKinds.segment,
  Link: valueKinds.link,
}

/** `"namespace": { "default": "wp/v2" }`: the argument of a namespace index. */
const argumentDefault = 'default'

const keyRules = (swap: NameSwap): ReadonlyMap<string, KeyRule> => {
  const rules = new Map<string, KeyRule>()
  for (const [name, opens] of Object.entries(namingKeys)) rules.set(name, { text: undefined, opens })
  rules.set(argumentDefault, { text: undefined, opens: valueKinds.plain })
  for (const [name, text] of swap.keys) rules.set(name, { text, opens: valueKinds.plain })
  return rules
}

const unescaped = (text: string): string => {
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    return text
  }
}

/** Applies `map` to text whose slashes may be escaped, and keeps their form. */
const withSlashes = (text: string, map: (plain: string) => string | undefined): string | undefined => {
  const escaped = text.includes('\\/')
  const plain = escaped ? text.replaceAll('\\/', '/') : text
  const mapped = map(plain)
  if (mapped === undefined || mapped === plain) return undefined
  return escaped ? mapped.replaceAll('/', '\\/') : mapped
}

const startsWith = (content: Buffer, start: number, end: number, prefix: Buffer): boolean => {
  if (end - start < prefix.length) return false
  for (let i = 0; i < prefix.length; i++) if (content[start + i] !== prefix[i]) return false
  return true
}

const hasBackslash = (content: Buffer, start: number, end: number): boolean => {
  for (let i = start; i < end; i++) if (content[i] === backslash) return true
  return false
}

/** In JSON a quote is escaped: `<…>; rel=\"next\"`. */
const mapLinkText = (plain: string, urls: RestUrls): string =>
  mapLinkValue(plain.replaceAll('\\"', '"'), urls).replaceAll('"', '\\"')

const quotedForPattern = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/**
 * Has a complete content neither a key of the rules nor one of the URLs? Then nothing in it is mapped, and it is not scanned octet by
 * octet. A backslash may hide a key or a URL.
 */
export const createIsUnmapped = (swap: NameSwap, urls: RestUrls): ((content: Buffer) => boolean) => {
  const keys = [...Object.keys(namingKeys), ...swap.keys.keys()].map((key) => `"${key}"`)
  const pattern = new RegExp(['\\', ...keys, ...urls.roots].map(quotedForPattern).join('|'))
  return (content) => !pattern.test(contentText(content).latin1)
}

/** The rules for one direction: names are swapped, URLs are translated by `urls`. */
export const createJsonRules = (swap: NameSwap, urls: RestUrls): StringRules => {
  const keys = keyRules(swap)
  const longest = Math.max(...[...keys.keys()].map((key) => key.length))
  // Length and first octet rule out most keys before a string is made of them.
  const hints = new Uint8Array((longest + 1) * 256)
  for (const key of keys.keys()) hints[key.length * 256 + key.charCodeAt(0)] = 1
  const prefixes = urls.roots.flatMap((root) => [
    Buffer.from(root, 'latin1'),
    Buffer.from(root.replaceAll('/', '\\/'), 'latin1'),
  ])
  const firstOctets = new Uint8Array(256)
  for (const prefix of prefixes) firstOctets[prefix[0] ?? 0] = 1
  const mapUrl = (text: string): string | undefined => withSlashes(text, urls.map)
  const mapNamed: Record<ValueKind, (text: string) => string | undefined> = {
    [valueKinds.plain]: mapUrl,
    [valueKinds.routes]: mapUrl,
    [valueKinds.namespace]: (text) =>
      withSlashes(text, (plain) => swap.namespaces.get(plain)) ?? mapUrl(text),
    [valueKinds.segment]: (text) => swap.segments.get(text) ?? mapUrl(text),
    [valueKinds.link]: (text) => withSlashes(text, (plain) => mapLinkText(plain, urls)) ?? mapUrl(text),
  }

  const plainKey = (content: Buffer, start: number, end: number, kind: ValueKind): KeyRule | undefined => {
    const hasEscape = hasBackslash(content, start, end)
    if (!hasEscape && hints[(end - start) * 256 + (content[start] ?? 0)] !== 1) return undefined
    const text = content.toString('latin1', start, end)
    const name = hasEscape ? unescaped(text) : text
    if (name === argumentDefault && kind === valueKinds.namespace)
      return { text: undefined, opens: valueKinds.namespace }
    return keys.get(name)
  }

  return {
    maxKeyLength: (kind) => (kind === valueKinds.routes ? maxPatternLength : longest * escapedLength),
    maxValueLength: maxUrlLength,
    mayMapValue: (first, kind) =>
      kind !== valueKinds.plain || first === undefined || firstOctets[first] === 1,
    key: (content, start, end, kind) => {
      if (kind !== valueKinds.routes) return plainKey(content, start, end, kind)
      const text = withSlashes(content.toString('latin1', start, end), (plain) => mapPath(plain, swap))
      return { text, opens: valueKinds.plain }
    },
    value: (content, start, end, kind) => {
      const isUrl = prefixes.some((prefix) => startsWith(content, start, end, prefix))
      return kind === valueKinds.plain && !isUrl
        ? undefined
        : mapNamed[kind](content.toString('latin1', start, end))
    },
  }
}
