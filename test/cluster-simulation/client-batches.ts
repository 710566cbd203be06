import { EndSignal } from '../../src/http/end-signal.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import type { Random } from '../support/random.ts'
import { isSuccess, type SentWrite, type Writers } from './client-writes.ts'
import type { Slot } from './cluster.ts'
import type { History } from './history.ts'
import { arrive, processOf } from './members-in-slots.ts'
import { type Oracle, seenIn } from './oracle.ts'
import { type Interface, json, type Resource, type SimulatedRequest } from './services/interface.ts'
import { requestFor } from './services/services.ts'
import type { SimulatedUpstream, WriteSpec } from './upstream.ts'
import { whenWhole } from './when-whole.ts'
import { type Process, world } from './world.ts'

/** What a batch does: writes, and reads of items. */
export type BatchEntry = WriteSpec | { readonly reads: number }

export type BatchPlan = {
  readonly entries: readonly BatchEntry[]
  /** The client sends it once more, with the same `Idempotency-Key`. */
  readonly isRepeated: boolean
  readonly leavesAfterMs: number | undefined
}

type SentRead = { readonly resource: Resource; readonly floors: readonly number[]; readonly from: number }
type Sent = { readonly write: SentWrite } | { readonly read: SentRead }

type ItemResponse = { readonly status: number; readonly body: unknown }

type BatchClientParts = {
  readonly hasDeadline: boolean
  readonly service: Interface
  readonly upstream: SimulatedUpstream
  readonly writers: Writers
  readonly oracle: Oracle
  readonly history: History
  readonly random: Random
}

/** The item that the response to a write of a site shows. */
const idIn = ({ body }: ItemResponse): number | undefined => {
  const { id, previous } = (body ?? {}) as {
    readonly id?: number
    readonly previous?: { readonly id: number }
  }
  return id ?? previous?.id
}

/** Clients that send batches: what the response says of each item holds as that of a separate request does. */
export const createBatchClients = (parts: BatchClientParts) => {
  const { hasDeadline, service, upstream, writers, oracle, history, random } = parts
  const counts = { batches: 0, reads: 0 }

  /** At the deadline a write may still be on its way. */
  const isKnown = ({ status }: ItemResponse): boolean => status < 500 || !hasDeadline

  const beginOf = (slot: Slot, process: Process, entry: BatchEntry): [Sent, SimulatedRequest] => {
    if ('reads' in entry) {
      const resource = entry.reads === 0 ? service.lists[0] : service.item(entry.reads)
      if (resource === undefined) throw new Error('no list')
      const read = { resource, floors: oracle.floorsOf(resource.name), from: history.moment() }
      // Equal reads are sent once.
      return [{ read }, resource.requests[0] ?? requestFor(resource, random)]
    }
    const write = writers.begin(slot, process, entry)
    const request = service.write(entry.item, entry.verb, 'rest')
    return [{ write }, { ...request, headers: { 'x-write': write.name } }]
  }

  /** What was written before in the same batch is shown by what is read after it. */
  const judge = (process: Process, { resource, floors, from }: SentRead, response: ItemResponse): void => {
    if (response.status !== 200) return
    counts.reads += 1
    const shown = resource.shown(JSON.stringify(response.body)) ?? {}
    const seen = seenIn(resource, shown, upstream.goneVersion)
    history.read(process.name, resource.name, seen, from)
    oracle.judge(resource.name, seen, floors, `read in a batch at ${process.name}`)
  }

  const judgeAll = (process: Process, sent: readonly Sent[], responses: readonly ItemResponse[]): void => {
    if (responses.length !== sent.length)
      oracle.violated('a batch has another number of responses than items')
    const written = new Map<number, number>()
    const isWritten = ({ expected }: SentWrite): void => {
      written.set(expected.item, expected.givenUp ?? expected.version)
    }
    const judged = (one: Sent, response: ItemResponse): void => {
      if ('write' in one) {
        if (isSuccess(response.status)) isWritten(one.write)
        const { item } = one.write.expected
        if (isSuccess(response.status) && (idIn(response) ?? item) !== item)
          oracle.violated(`the response to a write of ${item} in a batch is ${JSON.stringify(response.body)}`)
        return
      }
      const floors = one.read.floors.map((floor, index) => Math.max(floor, written.get(index + 1) ?? 0))
      judge(process, { ...one.read, floors }, response)
    }
    const answered = sent.flatMap((one, at) => {
      const response = responses[at]
      return response === undefined ? [] : [{ one, response }]
    })
    for (const { one, response } of answered) judged(one, response)
    for (const { one, response } of answered)
      if ('write' in one && isKnown(response)) one.write.responded(response.status)
  }

  const send = (
    slot: Slot,
    process: Process,
    request: SimulatedRequest,
    leavesAfterMs: number | undefined,
    ended: (response: GatewayResponse, text: string) => void,
  ): void => {
    slot.open += 1
    arrive(slot, { process, kind: `batch ${request.content}`, afterMs: random() * 0.3 }, (member) => {
      const signal = new EndSignal()
      if (leavesAfterMs !== undefined)
        world.schedule(world.now + leavesAfterMs, process, 'a client leaves', () =>
          signal.end(new Error('the client has left')),
        )
      void member.respond(request, signal).then((response) =>
        whenWhole(process, response, (text) => {
          slot.open -= 1
          if (text !== undefined) ended(response, text)
        }),
      )
    })
  }

  /** It runs nothing again. */
  const repeat = (slot: Slot, process: Process, request: SimulatedRequest, sent: readonly Sent[]): void => {
    const versions = (): string =>
      sent
        .flatMap((one) =>
          'write' in one && one.write.expected.fate === 'answered' ? one.write.expected.version : [],
        )
        .join()
    const before = versions()
    send(slot, process, request, undefined, ({ status }) => {
      if (status === 207 && versions() !== before)
        oracle.violated(`a batch with the same Idempotency-Key ran twice at ${process.name}`)
    })
  }

  return {
    counts,
    batch: (slot: Slot, { entries, isRepeated, leavesAfterMs }: BatchPlan): void => {
      const process = processOf(slot)
      const target = service.batchTarget
      if (process === undefined || target === undefined) return
      counts.batches += 1
      const begun = entries.map((entry) => beginOf(slot, process, entry))
      const sent = begun.map(([one]) => one)
      const requests = begun.map(([, { method, target: path, headers, content }]) => ({
        ...{ method, path, headers },
        ...(content === undefined ? {} : { body: JSON.parse(content.toString()) as unknown }),
      }))
      const key = isRepeated ? { 'idempotency-key': `batch-${counts.batches}` } : {}
      const headers = { ...service.batchHeaders, ...key }
      const request = { method: 'POST', target, headers, content: json({ requests }) }
      send(slot, process, request, leavesAfterMs, (response, text) => {
        // A client that has left sees nothing.
        if (response.status !== 207 || leavesAfterMs !== undefined) return
        const { responses } = JSON.parse(text) as { readonly responses: readonly ItemResponse[] }
        if (world.isTraced) world.note(`${process.name}: batch ${text}`)
        judgeAll(process, sent, responses)
        if (isRepeated) repeat(slot, process, request, sent)
      })
    },
  }
}
