import type { Readable } from 'node:stream'
import type { Cache } from '../cache/cache.ts'
import { withField } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'
import { unsafeTargets } from '../tags/unsafe-targets.ts'
import { chained } from './chained-stream.ts'
import type { Ready } from './exchange.ts'

/** The response with its content read, as far as `mostBytes`; a longer one streams on, with what was read in front. */
export const completed = async (response: GatewayResponse, mostBytes: number): Promise<GatewayResponse> => {
  const { content } = response
  if (content === undefined || Buffer.isBuffer(content)) return response
  const chunks: Buffer[] = []
  let bytes = 0
  const iterator = (content as Readable).iterator({ destroyOnReturn: false })
  for (;;) {
    const step = await iterator.next()
    if (step.done === true) {
      const whole = Buffer.concat(chunks)
      const fields = withField(response.fields, 'Content-Length', String(whole.length))
      return { ...response, fields, content: whole }
    }
    const chunk = step.value as Buffer
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > mostBytes) return { ...response, content: chained(chunks, iterator, content as Readable) }
  }
}

/** No answer, or one of a proxy that got none: whoever carries the write out has said nothing yet. Any other answer ends it. */
const mayStillRun = (response: { readonly status: number } | undefined): boolean =>
  response === undefined || response.status === 502 || response.status === 504

/** Drops what a write may have changed. To be called before its answer leaves the gateway; `undefined` = nobody knows the outcome. */
export const invalidateWrite = (
  cache: Cache,
  exchange: Ready,
  response: GatewayResponse | undefined,
): void => {
  const { service, method, matching, target } = exchange
  const written =
    response === undefined
      ? undefined
      : { ...response, content: Buffer.isBuffer(response.content) ? response.content : undefined }
  const found = matching.kind === 'found' ? matching : undefined
  const tags = service.tagger.writtenTags(found, exchange.arguments, method, written)
  // It may still be carried out, until the upstream's own time is over.
  if (mayStillRun(written)) cache.suspect(tags, service.upstreamTotalMs)
  else cache.invalidate(tags)
  service.local?.written(found?.row.collection ?? '')
  if (service.invalidatesTargets) {
    const url = `${service.upstream.placeholderOrigin}${service.basePath}${target}`
    const sparedByServerError = exchange.policy.profile === 'rfc-shared-cache'
    const targets = unsafeTargets({ target, url, sparedByServerError }, written)
    cache.invalidateTargets(service.name, targets)
  }
}
