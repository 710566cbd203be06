import { createHash } from 'node:crypto'
import { createLocalJWKSet, type LocalJWKSet } from 'jose'
import type { Clock } from '../../clock.ts'
import { type PublicJwk, readJwks } from '../../config/access.ts'
import type { JwksResult } from '../events.ts'

/** The public keys that tokens are verified with. */
export type Jwks = {
  /** Undefined until they have been fetched once. */
  readonly keys: LocalJWKSet | undefined
  /** Changes with the keys, so that tokens verified with other keys are verified again. */
  readonly version: number
  /** To be called for each token: fetches keys that are old. The promise is there when the keys must not be used before it. */
  refreshWhenOld(): Promise<void> | undefined
  /** For a token whose key is unknown: the issuer may have a new one. Undefined when the last such fetch was a moment ago. */
  refreshForUnknownKey(): Promise<void> | undefined
}

const mostBytes = 64 * 1024
const timeoutMs = 5_000
/** Unknown keys of all clients together cause one fetch in this time. */
const unknownKeyPauseMs = 10_000
/** After a failure. */
const retryPauseMs = 5_000

class JwksFailure extends Error {
  readonly result: Exclude<JwksResult, 'ok'>
  constructor(result: Exclude<JwksResult, 'ok'>) {
    super(result)
    this.result = result
  }
}

const readBody = async (response: Response): Promise<string> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > mostBytes) throw new JwksFailure('too-large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Fetches the JWKS. No redirect is followed: the configuration names the host. */
const fetchText = async (url: string): Promise<string> => {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, { signal, redirect: 'manual', headers: { accept: 'application/json' } })
    if (response.status === 200) return await readBody(response)
    await response.body?.cancel()
    throw new JwksFailure('status')
  } catch (error) {
    if (error instanceof JwksFailure) throw error
    throw new JwksFailure(signal.aborted ? 'timeout' : 'unreachable')
  }
}

const keysOf = (keys: readonly PublicJwk[]): LocalJWKSet => createLocalJWKSet({ keys: [...keys] })

/** Keys of a file: they change with the configuration. */
const fixedJwks = (text: string): Jwks => {
  const reading = readJwks(text)
  return {
    keys: keysOf(reading.kind === 'read' ? reading.value : []),
    version: 0,
    refreshWhenOld: () => undefined,
    refreshForUnknownKey: () => undefined,
  }
}

type FetchedJwksOptions = {
  readonly url: string
  readonly refreshMs: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly report: (result: JwksResult) => void
}

/**
 * Keys of a URL: one fetch at a time, bounded in time and size. They are kept while the issuer cannot be reached, because its
 * tokens are still good.
 */
const fetchedJwks = ({ url, refreshMs, clock, report }: FetchedJwksOptions): Jwks => {
  let keys: LocalJWKSet | undefined
  let version = 0
  let digest = ''
  let fetching: Promise<void> | undefined
  let fetchedMs = Number.NEGATIVE_INFINITY
  let failedMs = Number.NEGATIVE_INFINITY
  let unknownKeyMs = Number.NEGATIVE_INFINITY

  const attempt = async (): Promise<void> => {
    try {
      const text = await fetchText(url)
      const reading = readJwks(text)
      if (reading.kind === 'fault') throw new JwksFailure('not-jwks')
      const found = createHash('sha256').update(text).digest('hex')
      if (found !== digest) {
        keys = keysOf(reading.value)
        version += 1
        digest = found
      }
      fetchedMs = clock.monotonic()
      failedMs = Number.NEGATIVE_INFINITY
      report('ok')
    } catch (error) {
      failedMs = clock.monotonic()
      report(error instanceof JwksFailure ? error.result : 'not-jwks')
    } finally {
      fetching = undefined
    }
  }
  const refresh = (): Promise<void> => {
    fetching ??= attempt()
    return fetching
  }
  const hasJustFailed = (): boolean => clock.monotonic() - failedMs < retryPauseMs

  void refresh()
  return {
    get keys() {
      return keys
    },
    get version() {
      return version
    },
    refreshWhenOld: () => {
      const ageMs = clock.monotonic() - fetchedMs
      if (ageMs < refreshMs) return undefined
      const refreshed = fetching ?? (hasJustFailed() ? undefined : refresh())
      // Used a while longer, so that requests of a busy service never wait; after a long pause a removed key must not be used once more.
      return ageMs < 2 * refreshMs ? undefined : refreshed
    },
    refreshForUnknownKey: () => {
      if (fetching !== undefined) return fetching
      if (hasJustFailed() || clock.monotonic() - unknownKeyMs < unknownKeyPauseMs) return undefined
      unknownKeyMs = clock.monotonic()
      return refresh()
    },
  }
}

export type JwksOptions = Omit<FetchedJwksOptions, 'url'> & {
  /** A URL, or the text of a JWKS. */
  readonly source: string
}

export const createJwks = ({ source, ...options }: JwksOptions): Jwks =>
  /^https?:/i.test(source) ? fetchedJwks({ ...options, url: source }) : fixedJwks(source)
