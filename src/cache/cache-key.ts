import { createHmac, randomBytes } from 'node:crypto'
import { foldedTarget } from '../http/targets.ts'

/** `partition` is `public` or the hash of a credential. */
type CacheKeyParts = {
  readonly service: string
  /** Canonical path and query relative to the service. */
  readonly target: string
  readonly partition: string
  /** The host of the request where responses of the service depend on it; '' or absent where they do not. */
  readonly host?: string
  /** `http` or `https` where it is not that of the public URL; '' or absent where it is (RFC 9111 §2: the key has the whole URI). */
  readonly scheme?: string
}

/** With its length in front, no text can be read as another split of the key. */
const part = (text: string): string => `${text.length}:${text}`

/** Everything stored for one target, in all partitions and for all hosts, has keys that begin with this. */
export const targetKey = (service: string, target: string): string => part(service) + part(target)

/** The tag of all that is stored for a service, whatever its contract; no index has it, so it is for quarantines alone. */
export const serviceKey = part

/**
 * The tag of what is stored for all spellings of a target, as far as a server may read them as the same; undefined for the one whose
 * `targetKey` it is, which never has a query.
 */
export const foldedTargetKey = (service: string, target: string): string | undefined => {
  const form = foldedTarget(target)
  return form === target ? undefined : targetKey(service, form)
}

const publicEnd = part('public')

/** The primary cache key (RFC 9111 §2); injective. */
export const cacheKey = (parts: CacheKeyParts): string => {
  const { partition, host = '', scheme = '' } = parts
  const start = targetKey(parts.service, parts.target)
  if (partition === 'public' && host === '' && scheme === '') return start + publicEnd
  const place = scheme === '' ? (host === '' ? '' : part(host)) : part(host) + part(scheme)
  return start + part(partition) + place
}

const endOfPart = (key: string, start: number): number => {
  const colon = key.indexOf(':', start)
  return colon + 1 + Number(key.slice(start, colon))
}

/** '' behind the end. */
const readPart = (key: string, start: number): { readonly text: string; readonly end: number } => {
  if (start === key.length) return { text: '', end: start }
  const end = endOfPart(key, start)
  return { text: key.slice(key.indexOf(':', start) + 1, end), end }
}

export const partsOfKey = (key: string): Required<CacheKeyParts> => {
  const service = readPart(key, 0)
  const target = readPart(key, service.end)
  const partition = readPart(key, target.end)
  const host = readPart(key, partition.end)
  return {
    service: service.text,
    target: target.text,
    partition: partition.text,
    host: host.text,
    scheme: readPart(key, host.end).text,
  }
}

/** Of a key of the service, its target; undefined for other keys. */
export const targetsOf = (service: string): ((key: string) => string | undefined) => {
  const start = part(service)
  return (key) => (key.startsWith(start) ? readPart(key, start.length).text : undefined)
}

const endOfTarget = (key: string): number => endOfPart(key, endOfPart(key, 0))

/** Other tags begin with the name of a service, which has no colon. */
const isKey = (tag: string): boolean => /^\d+:/.test(tag)

const spellingsOf = (key: string): string | undefined => {
  if (!isKey(key)) return undefined
  const { service, target } = partsOfKey(key)
  return foldedTargetKey(service, target)
}

/** The tags that people see: without those of the spellings of a target among `keys`, each of which people see itself. */
export const shownTags = (tags: readonly string[], keys = tags): readonly string[] => {
  const spellings = new Set(keys.map(spellingsOf))
  return tags.filter((tag) => !spellings.has(tag))
}

export const targetKeyOf = (key: string): string => key.slice(0, endOfTarget(key))

export const serviceKeyOf = (key: string): string => key.slice(0, endOfPart(key, 0))

/** The key of a target in the public partition: it follows from the `targetKey`, so that no index is needed to find it. */
export const publicKeyOf = (targetKey: string): string => targetKey + publicEnd

export const isPublicKey = (key: string): boolean =>
  key.endsWith(publicEnd) && endOfTarget(key) === key.length - publicEnd.length

/**
 * Makes partitions of credentials. The salt lives as long as the process, so that a key seen in a dump or in the
 * admin listing can neither be turned back into a credential nor be tried against a list of them.
 */
export const createPartitions = (): ((credential: string) => string) => {
  const salt = randomBytes(32)
  return (credential) => createHmac('sha256', salt).update(credential).digest('base64url')
}
