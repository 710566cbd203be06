import { createHash } from 'node:crypto'
import type { HeaderLines } from '../../../src/http/headers/header-lines.ts'
import { newMachine, type Process, world } from '../world.ts'
import { type Receiver, settleMs } from './front.ts'
import { loadNext, type NextReceiver } from './load-next.ts'
import { receiverSecret } from './secret.ts'

const recordOf = (headers: HeaderLines): Readonly<Record<string, string>> =>
  Object.fromEntries(
    headers.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), headers[at + 1] ?? '']] : [])),
  )

type Running = NextReceiver & { readonly process: Process }

/**
 * A process of Next.js, as the gateways and its `fetch` know it: the handlers of packages/next, in a process with a clock and a memory of
 * its own.
 */
export const createNext = (): Receiver => {
  const random = world.randomFor('next')
  let starts = 0
  const start = (): Running => {
    starts += 1
    const process = world.createProcess(`next${starts}`, newMachine())
    const id = createHash('sha256').update(process.name).digest('hex').slice(0, 16)
    return {
      process,
      ...loadNext({ id, now: () => world.monotonicOf(process), wall: () => world.wallOf(process) }),
    }
  }
  let running = start()
  const inProcess = ({ process }: Running, kind: string, run: () => void, afterMs = 0): void => {
    world.schedule(world.now + afterMs, process, kind, run)
  }

  return {
    look: (target, then) => {
      const own = running
      // Next.js makes a handler for each request.
      const handler = new own.Handler()
      inProcess(own, `next: ${target}`, () => {
        void handler.get(target, { kind: 'FETCH' }).then((found) =>
          then({
            stored: found?.value.data.body,
            receive: ({ headers, status }) => ({
              // However long it is on its way: it began before.
              whole: (content) => {
                if (status !== 200) return
                const data = { headers: recordOf(headers), body: content }
                const value = { kind: 'FETCH', data, revalidate: 60 } as const
                const afterMs = random() < 0.3 ? random() * 3 * settleMs : random()
                inProcess(own, 'next stores', () => void handler.set(target, value, { tags: [] }), afterMs)
              },
            }),
          }),
        )
      })
    },
    purge: ({ headers, body = '' }, confirm) => {
      const own = running
      const { signal } = new AbortController()
      inProcess(own, 'next is purged', () => {
        if (world.isTraced) world.note(`next: ${body}`)
        const request = {
          text: async () => body,
          headers: { get: (name: string) => headers[name] ?? null },
          signal,
        }
        void own
          .route(receiverSecret)(request)
          .then((response) => {
            const id = response.headers.get('trellis-receiver')
            confirm(response.status, id === null ? {} : { 'trellis-receiver': id })
          })
      })
    },
    restart: () => {
      running.process.isAlive = false
      running = start()
    },
  }
}
