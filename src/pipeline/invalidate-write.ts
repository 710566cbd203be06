import { Readable } from 'node:stream'
import type { Cache } from '../cache/cache.ts'
import { targetKey } from '../cache/cache-key.ts'
import type { Note } from '../cache/invalidation-note.ts'
import {
  namedTarget,
  type Shown,
  type UnsafeRequest,
  unsafeTargets,
  type WriteResponse,
} from '../cache/tagger.ts'
import { overheadOfChunk, type Reservation } from '../http/byte-budget.ts'
import { fieldValue, requestField, withField } from '../http/fields.ts'
import type { GatewayResponse, ResponseHead } from '../http/message.ts'
import { wentUpWhole } from '../upstream/request-content.ts'
import { carryOut } from './apply-invalidations.ts'
import type { Ready } from './exchange.ts'
import { givenNames } from './given-names.ts'
import type { Service } from './service.ts'

/** A stream of what has been read already and of what is still to come; destroying it destroys its source. */
const chained = (read: readonly Buffer[], rest: AsyncIterator<Buffer>, source: Readable): Readable =>
  Readable.from(
    (async function* () {
      yield* read
      yield* { [Symbol.asyncIterator]: () => rest }
    })(),
    { objectMode: false },
  )
    // A generator that was never begun has no end of its own.
    .on('close', () => source.destroy())

/**
 * The response with its content read, as far as `mostBytes` and `room` go; one for which they do not suffice streams on, with what was
 * read in front. Nothing of `room` is taken when it is there.
 */
export const completed = async (
  response: GatewayResponse,
  mostBytes: number,
  room: Reservation,
): Promise<GatewayResponse> => {
  const { content } = response
  if (content === undefined || Buffer.isBuffer(content)) return response
  const chunks: Buffer[] = []
  let bytes = 0
  let taken = 0
  const iterator = (content as Readable).iterator({ destroyOnReturn: false })
  try {
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
      const cost = chunk.length + overheadOfChunk
      const hasRoom = room.reserve(cost)
      if (hasRoom) taken += cost
      if (!hasRoom || bytes > mostBytes)
        return { ...response, content: chained(chunks, iterator, content as Readable) }
    }
  } finally {
    room.shrink(taken)
  }
}

/**
 * No answer, or one of a proxy that got none: the program that carries the write out has said nothing yet. Any other answer ends it,
 * and so does one that came before the whole request had been sent.
 */
const mayStillRun = (
  { content, request }: Ready,
  response: { readonly status: number } | undefined,
): boolean => {
  if (response === undefined) return true
  if (response.status !== 502 && response.status !== 504) return false
  return wentUpWhole(content, requestField(request.fields, 'content-length'))
}

/** WordPress begins with its scheduled tasks after the answer: nothing is kept until they are likely to be done. */
const cronMs = 5_000

/** What RFC 9111 §4.4 needs to know of a write to an open service. */
const unsafeRequest = ({ service, target, policy }: Ready): UnsafeRequest => ({
  target,
  url: `${service.upstream.placeholderOrigin}${service.basePath}${target}`,
  roots: service.roots,
  sparedByServerError: policy.profile === 'rfc-shared-cache',
})

/** A target as it is keyed, however the upstream spells it. */
const spelled = (service: Service, target: string): string | undefined => {
  const at = target.indexOf('?')
  const found = service.find('GET', at === -1 ? target : target.slice(0, at))
  if (found.kind !== 'found') return undefined
  return at === -1 ? found.path : found.path + target.slice(at)
}

/** Does Content-Location say that the answer shows what the target of its own request shows (RFC 9110 §8.7)? */
export const showsOwnTarget = (exchange: Ready, head: ResponseHead): boolean => {
  const named = namedTarget(fieldValue(head.fields, 'content-location'), unsafeRequest(exchange))
  return named !== undefined && spelled(exchange.service, named) === exchange.target
}

const targetTags = (exchange: Ready, written: WriteResponse | undefined): readonly string[] =>
  exchange.service.invalidatesTargets
    ? unsafeTargets(unsafeRequest(exchange), written)
        .flatMap((one) => spelled(exchange.service, one) ?? [])
        .map((target) => targetKey(exchange.service.name, target))
    : []

const documentsNotes = ({ name, local }: Service, collection: string): readonly Note[] =>
  local === undefined ? [] : [{ kind: 'documents', service: name, collection }]

/** All that a service holds, as after a write to it that no row describes. */
const everythingOf = (service: Service, note: (tag: string) => Note): readonly Note[] => [
  ...service.tagger.writtenTags(undefined, () => undefined, 'POST', undefined).map(note),
  ...documentsNotes(service, ''),
]

/** What a write may have changed; without a response nobody knows the outcome. */
export const writeNotes = (
  exchange: Ready,
  response: GatewayResponse | undefined,
  /** Contents that show the state right before the write. */
  shown: Shown = () => [],
): readonly Note[] => {
  const { service, method, matching } = exchange
  const written =
    response === undefined
      ? undefined
      : { ...response, content: Buffer.isBuffer(response.content) ? response.content : undefined }
  const found = matching.kind === 'found' ? matching : undefined
  const given = (): readonly string[] | undefined => {
    const { query, content, request } = exchange
    return givenNames(query, requestField(request.fields, 'content-type'), content)
  }
  const tags = [
    ...service.tagger.writtenTags(found, given, method, written, shown),
    ...targetTags(exchange, written),
  ]
  // It may still be carried out, until the upstream's own time is over.
  const forMs = exchange.sensitive === 'cron' ? cronMs : service.upstreamTotalMs
  const isOver = exchange.sensitive !== 'cron' && !mayStillRun(exchange, written)
  const note = (tag: string): Note =>
    isOver ? { kind: 'tag', tag, mode: 'hard' } : { kind: 'hold', tag, forMs }
  const refused = tags.length === 0 && written !== undefined && written.status >= 400 && written.status < 500
  return [
    ...tags.map(note),
    ...documentsNotes(service, found?.row.collection ?? ''),
    ...(refused ? [] : service.sharing().flatMap((other) => everythingOf(other, note))),
  ]
}

/** Drops what a write may have changed. To be called before its answer leaves the gateway. */
export const invalidateWrite = (cache: Cache, { service }: Ready, notes: readonly Note[]): void => {
  const documentsOutdated = (name: string, collection: string): void =>
    [service, ...service.sharing()].find((one) => one.name === name)?.local?.written(collection)
  carryOut(notes, cache, documentsOutdated, 'write')
}
