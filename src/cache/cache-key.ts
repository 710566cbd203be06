import { createHmac, randomBytes } from 'node:crypto'

/** `partition` is `public` or the hash of a credential. */
export type CacheKeyParts = {
  readonly service: string
  /** Canonical path and query relative to the service. */
  readonly target: string
  /** '' for complete responses, `parts` for incomplete ones. */
  readonly dialect: string
  readonly partition: string
  /** The host of the request where responses of the service depend on it; '' or absent where they do not. */
  readonly host?: string
}

/** With its length in front, no text can be read as another split of the key. */
const part = (text: string): string => `${text.length}:${text}`

/** Everything stored for one target, in all dialects and partitions and for all hosts, has keys that begin with this. */
export const targetKey = (service: string, target: string): string => part(service) + part(target)

const publicEnd = part('') + part('public')

/** The primary cache key (RFC 9111 §2); injective. */
export const cacheKey = (parts: CacheKeyParts): string => {
  const { dialect, partition, host = '' } = parts
  const isPublic = dialect === '' && partition === 'public' && host === ''
  return (
    targetKey(parts.service, parts.target) +
    (isPublic ? publicEnd : part(dialect) + part(partition) + (host === '' ? '' : part(host)))
  )
}

const endOfPart = (key: string, start: number): number => {
  const colon = key.indexOf(':', start)
  return colon + 1 + Number(key.slice(start, colon))
}

const readPart = (key: string, start: number): { readonly text: string; readonly end: number } => {
  const end = endOfPart(key, start)
  return { text: key.slice(key.indexOf(':', start) + 1, end), end }
}

/** The parts of a key made by `cacheKey`. */
export const partsOfKey = (key: string): Required<CacheKeyParts> => {
  const service = readPart(key, 0)
  const target = readPart(key, service.end)
  const dialect = readPart(key, target.end)
  const partition = readPart(key, dialect.end)
  return {
    service: service.text,
    target: target.text,
    dialect: dialect.text,
    partition: partition.text,
    host: partition.end === key.length ? '' : readPart(key, partition.end).text,
  }
}

/** Does the target of a key begin with the prefix? Without splitting the key, since it is called for all keys. */
export const isUnder = (service: string, prefix: string): ((key: string) => boolean) => {
  const ofService = part(service)
  return (key) => {
    if (!key.startsWith(ofService)) return false
    const colon = key.indexOf(':', ofService.length)
    return key.startsWith(prefix, colon + 1) && Number(key.slice(ofService.length, colon)) >= prefix.length
  }
}

const endOfTarget = (key: string): number => endOfPart(key, endOfPart(key, 0))

/** The `targetKey` that a key begins with. */
export const targetKeyOf = (key: string): string => key.slice(0, endOfTarget(key))

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
