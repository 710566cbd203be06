import type { FieldLines } from '../http/fields.ts'
import type { RestUrls } from './rest-urls.ts'

/** What describes the upstream's octets and is wrong for mapped ones (RFC 9110 §7.7, RFC 9530 §2). */
const octetFields = new Set(['content-length', 'content-md5', 'digest', 'content-digest', 'accept-ranges'])

/** Translates the targets of a Link field (RFC 8288 §3): only what stands in angle brackets outside a quoted string. */
export const mapLinkValue = (value: string, urls: RestUrls): string => {
  let mapped = ''
  let at = 0
  while (at < value.length) {
    const open = nextTarget(value, at)
    const close = open === -1 ? -1 : value.indexOf('>', open)
    if (close === -1) break
    const target = value.slice(open + 1, close)
    mapped += value.slice(at, open + 1) + (urls.map(target) ?? target)
    at = close
  }
  return mapped + value.slice(at)
}

const nextTarget = (value: string, from: number): number => {
  let quoted = false
  for (let at = from; at < value.length; at++) {
    const character = value[at]
    if (quoted && character === '\\') at++
    else if (character === '"') quoted = !quoted
    else if (character === '<' && !quoted) return at
  }
  return -1
}

const mapReference = (value: string, urls: RestUrls): string =>
  urls.map(value) ?? (value.startsWith('//') ? undefined : urls.mapPathReference(value)) ?? value

const mapField = (name: string, value: string, urls: RestUrls): string => {
  if (name === 'link') return mapLinkValue(value, urls)
  return name === 'location' || name === 'content-location' ? mapReference(value, urls) : value
}

/** A strong validator promises these very octets (RFC 9110 §8.8.1); mapped ones are only equivalent. */
const weakened = (entityTag: string): string => (entityTag.startsWith('W/') ? entityTag : `W/${entityTag}`)

/** The upstream's fields as the public side may see them; `contentMapped` when its content is mapped too. */
export const mapFields = (lines: FieldLines, urls: RestUrls, contentMapped: boolean): string[] => {
  const mapped: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string
    const value = lines[i + 1] as string
    const lower = name.toLowerCase()
    if (!contentMapped) mapped.push(name, mapField(lower, value, urls))
    else if (lower === 'etag') mapped.push(name, weakened(value))
    else if (!octetFields.has(lower)) mapped.push(name, mapField(lower, value, urls))
  }
  return mapped
}
