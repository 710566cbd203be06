import { createHmac } from 'node:crypto'
import type { ReceiverConfig } from '../config/config.ts'
import { isJsonObject, parsedJson } from '../http/json-text.ts'

export type CachePurge = {
  readonly method: 'POST' | 'PURGE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** How one kind of receiver is asked. */
export type PurgeDialect = {
  /** In one request. */
  readonly maxTags: number
  /** Between two attempts. Networks for content bound the requests of an account; a process of one's own is wanted back soon. */
  readonly maxPauseMs: number
  request(tags: readonly string[]): CachePurge
  /** Of a 2xx: does the content confirm it? */
  confirms(content: string): boolean
}

const ownMaxPauseMs = 1_000
const networkMaxPauseMs = 30_000

const isConfirmed = (): boolean => true

const json = (value: unknown, path: string, headers: Readonly<Record<string, string>>): CachePurge => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
  body: JSON.stringify(value),
})

/** Rises with each request, also over restarts: a receiver can refuse one that was recorded and is sent again. */
const createSequence = (now: () => number) => {
  let last = 0
  return (): number => {
    last = Math.max(last + 1, now())
    return last
  }
}

/**
 * Docs of the receivers: Varnish https://github.com/varnish/varnish-modules/blob/master/src/vmod_xkey.vcc, Fastly
 * https://www.fastly.com/documentation/reference/api/purging/ (256 keys in a request), Cloudflare
 * https://developers.cloudflare.com/api/resources/cache/methods/purge/ (100 tags in a request). `everything`: see outward-tags.ts.
 */
export const createDialect = (
  { type, url, secret, service, zone }: ReceiverConfig,
  everything: string,
  now: () => number,
): PurgeDialect => {
  const { pathname, search } = new URL(url)
  const path = pathname + search
  const base = pathname.replace(/\/$/, '')
  switch (type) {
    case 'varnish':
      return {
        // Varnish takes lines of 8 KB (http_req_hdr_len).
        maxTags: 512,
        maxPauseMs: ownMaxPauseMs,
        request: (tags) => ({
          method: 'PURGE',
          path,
          headers: { 'xkey-purge': tags.join(' ') },
          body: undefined,
        }),
        confirms: isConfirmed,
      }
    case 'fastly':
      return {
        maxTags: 256,
        maxPauseMs: networkMaxPauseMs,
        request: (tags) =>
          json({ surrogate_keys: tags }, `${base}/service/${service}/purge`, {
            'fastly-key': secret.reveal(),
          }),
        confirms: isConfirmed,
      }
    case 'cloudflare':
      return {
        maxTags: 100,
        maxPauseMs: networkMaxPauseMs,
        request: (tags) =>
          json({ tags }, `${base}/client/v4/zones/${zone}/purge_cache`, {
            authorization: `Bearer ${secret.reveal()}`,
          }),
        confirms: (content) => {
          const response = parsedJson(content)
          return isJsonObject(response) && response['success'] === true
        },
      }
    case 'webhook':
    case 'next': {
      const next = createSequence(now)
      return {
        maxTags: 1_000,
        maxPauseMs: ownMaxPauseMs,
        request: (tags) => {
          const request = json({ tags, all: tags.includes(everything), sequence: next() }, path, {})
          const signature = createHmac('sha256', secret.reveal())
            .update(request.body ?? '')
            .digest('hex')
          return { ...request, headers: { ...request.headers, 'trellis-signature': `sha256=${signature}` } }
        },
        confirms: isConfirmed,
      }
    }
  }
}
