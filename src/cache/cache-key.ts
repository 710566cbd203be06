import { createHmac, randomBytes } from 'node:crypto'

/** What tells one cached resource from another. `partition` is `public` or the hash of a credential. */
export type CacheKeyParts = {
  readonly service: string
  /** Canonical path and query relative to the service. */
  readonly target: string
  /** Which form of the answer: the same target may be answered under several names or hosts. */
  readonly dialect: string
  readonly partition: string
}

/** Length before text: no text, whatever it contains, can be read as another split of the key. */
const part = (text: string): string => `${text.length}:${text}`

/** Everything stored for one target, in all dialects and partitions, has keys that begin with this. */
export const targetKey = (service: string, target: string): string => part(service) + part(target)

/** The primary cache key (RFC 9111 §2); injective. */
export const cacheKey = (parts: CacheKeyParts): string =>
  targetKey(parts.service, parts.target) + part(parts.dialect) + part(parts.partition)

const readPart = (key: string, start: number): { readonly text: string; readonly end: number } => {
  const colon = key.indexOf(':', start)
  const end = colon + 1 + Number(key.slice(start, colon))
  return { text: key.slice(colon + 1, end), end }
}

/** The parts of a key made by `cacheKey`. */
export const partsOfKey = (key: string): CacheKeyParts => {
  const service = readPart(key, 0)
  const target = readPart(key, service.end)
  const dialect = readPart(key, target.end)
  const partition = readPart(key, dialect.end)
  return { service: service.text, target: target.text, dialect: dialect.text, partition: partition.text }
}

/** The `targetKey` that a key begins with. */
export const targetKeyOf = (key: string): string => key.slice(0, readPart(key, readPart(key, 0).end).end)

/**
 * Makes partitions of credentials. The salt lives as long as the process, so that a key seen in a dump or in the
 * admin listing can neither be turned back into a credential nor be tried against a list of them.
 */
export const createPartitions = (): ((credential: string) => string) => {
  const salt = randomBytes(32)
  return (credential) => createHmac('sha256', salt).update(credential).digest('base64url')
}
