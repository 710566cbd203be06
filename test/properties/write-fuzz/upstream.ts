import { type Origin, pause, startOrigin } from '../../support/origin.ts'
import type { Random } from '../../support/random.ts'
import type { WritePlan } from './plan.ts'

/** The upstream of one lane: all of its services show the same version, and each write changes it. */
export type FuzzedUpstream = {
  readonly origin: string
  readonly version: number
  /** The write that comes next; resolves when the program has done with it, and its connection or its response has ended. */
  expect(plan: WritePlan): { readonly over: () => Promise<void>; readonly hasBegun: () => boolean }
  close(): Promise<void>
}

const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
/** An event stream may be silent for as long as it likes. */
const streamHead = ({ ending }: WritePlan): string =>
  `HTTP/1.1 200 OK\r\nContent-Type: ${ending === 'silent in the stream' ? 'application/x-ndjson' : 'text/event-stream'}\r\nTransfer-Encoding: chunked\r\n\r\n`

type Wire = Parameters<Origin['script']>[1]

export const startFuzzedUpstream = async (random: Random): Promise<FuzzedUpstream> => {
  let version = 1
  let next: { readonly plan: WritePlan; run?: Promise<void> } | undefined

  const change = async (plan: WritePlan): Promise<void> => {
    await pause(plan.changeMs)
    version += 1
  }
  const closed = ({ socket }: Wire): Promise<void> =>
    socket.destroyed ? Promise.resolve() : new Promise((resolve) => void socket.once('close', resolve))
  const piece = (plan: WritePlan): string => chunk(`saved ${version};${plan.endsLines ? '\n\n' : ''}`)

  const stream = async (plan: WritePlan, wire: Wire): Promise<void> => {
    wire.write(streamHead(plan))
    for (let at = 0; at < plan.pieces; at += 1) {
      await change(plan)
      wire.write(piece(plan))
    }
    if (plan.ending === 'cut in the stream' && !plan.isLate) await change(plan)
    if (plan.ending === 'cut in the stream') wire.reset()
    else if (plan.ending === 'silent in the stream') await closed(wire)
    else {
      if (plan.changesAtEnd) await change(plan)
      wire.write('0\r\n\r\n')
      return
    }
    if (plan.isLate) await change(plan)
  }

  /** The program acts on what it has. */
  const actOnPart = async (plan: WritePlan, wire: Wire): Promise<void> => {
    await change(plan)
    await closed(wire)
    if (plan.isLate) await change(plan)
  }

  const write = async (plan: WritePlan, wire: Wire): Promise<void> => {
    switch (plan.ending) {
      case 'whole':
        await change(plan)
        return wire.respond({
          headers: { 'Content-Type': 'application/json' },
          content: `"saved ${version};"`,
        })
      case 'gateway error':
        wire.respond({ status: 504, content: 'gone' })
        return change(plan)
      case 'short':
        wire.write('HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\nbegun')
        wire.end()
        return change(plan)
      case 'cut before the head':
        if (!plan.isLate) await change(plan)
        wire.reset()
        return plan.isLate ? change(plan) : undefined
      case 'silent':
        await change(plan)
        await closed(wire)
        return plan.isLate ? change(plan) : undefined
      default:
        return stream(plan, wire)
    }
  }

  const origin = await startOrigin(
    async ({ method }, wire) => {
      if (method === 'POST') {
        const mine = next
        if (mine === undefined || mine.run !== undefined) return wire.reset()
        mine.run = mine.plan.body === 'partial' ? actOnPart(mine.plan, wire) : write(mine.plan, wire)
        return mine.run
      }
      // The rest of a content that has come after its response.
      if (method !== 'GET') return
      const shown = version
      // Some show the state of before, and arrive after the write.
      if (random() < 0.3) await pause(random() * 30)
      wire.respond({
        headers: { 'Content-Type': 'application/json' },
        content: `[{"id":${shown}}]`,
      })
    },
    { respondsEarly: true },
  )
  return {
    origin: origin.origin,
    get version() {
      return version
    },
    expect: (plan) => {
      const own: { readonly plan: WritePlan; run?: Promise<void> } = { plan }
      next = own
      return { over: async () => own.run, hasBegun: () => own.run !== undefined }
    },
    close: () => origin.close(),
  }
}
