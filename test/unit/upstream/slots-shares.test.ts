import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSlots, type SlotRequest, type Slots } from '../../../src/upstream/slots.ts'

const requestOf = (client: string, arriving = false): SlotRequest => ({ client, line: '', arriving })

const slotsOf = (max: number, queueMax: number, clientShare: number) => {
  const slots = createSlots({ max, queueMax, queueTimeoutMs: 0, clientShare })
  const log: string[] = []
  const ask = (name: string, request: SlotRequest) =>
    slots.acquire(
      request,
      () => log.push(name),
      (why) => log.push(`${name}:${why}`),
    )
  return { slots, log, ask }
}

test('a client has no more than its share, though slots are free, and another client gets them', () => {
  const { slots, log, ask } = slotsOf(4, 8, 0.5)
  for (const name of ['a1', 'a2', 'a3', 'a4']) ask(name, requestOf('a'))
  expect(log).toEqual(['a1', 'a2'])
  ask('b1', requestOf('b'))
  ask('b2', requestOf('b'))
  expect(log.splice(0)).toEqual(['a1', 'a2', 'b1', 'b2'])
  slots.release(requestOf('b'))
  expect(log).toEqual([])
  slots.release(requestOf('a'))
  expect(log).toEqual(['a3'])
})

test('a client has no more than its share of the queue, and in a full queue the client with the most gives way', () => {
  const { log, ask } = slotsOf(2, 4, 0.5)
  for (const name of ['a1', 'a2', 'a3', 'a4']) ask(name, requestOf('a'))
  expect(log.splice(0)).toEqual(['a1', 'a4:client-share'])
  for (const name of ['b1', 'b2', 'b3']) ask(name, requestOf('b'))
  expect(log.splice(0)).toEqual(['b1'])
  ask('c1', requestOf('c'))
  expect(log).toHaveLength(1)
  expect(log[0]).toMatch(/^(a3|b3):full$/)
})

test('requests whose bodies are still arriving have half of the slots; one that has arrived gives its place to the next', () => {
  const { slots, log, ask } = slotsOf(4, 8, 0.9)
  const first = requestOf('a', true)
  ask('a1', first)
  ask('b1', requestOf('b', true))
  ask('c1', requestOf('c', true))
  ask('d1', requestOf('d'))
  expect(log.splice(0)).toEqual(['a1', 'b1', 'd1'])
  slots.arrived(first)
  expect(log).toEqual(['c1'])
})

test('a share of 1 is no bound', () => {
  const { log, ask } = slotsOf(2, 2, 1)
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) ask(name, requestOf('a', true))
  expect(log).toEqual(['a1', 'a2', 'a5:full'])
})

type Held = { readonly request: SlotRequest; state: 'waiting' | 'held' | 'over'; leave: () => void }

const step = fc.record({
  act: fc.constantFrom('ask', 'ask', 'ask', 'release', 'arrive', 'leave'),
  client: fc.constantFrom('a', 'b', 'c', ''),
  line: fc.constantFrom('', 'batch'),
  arriving: fc.boolean(),
  which: fc.nat(50),
})

const count = (
  all: readonly Held[],
  state: Held['state'],
  willDo: (request: SlotRequest) => boolean,
): number => all.filter((one) => one.state === state && willDo(one.request)).length

test('never more than the bounds, each request answered once, and no slot free for which a request waits that may have it', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 120 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 0, max: 8 }),
      fc.constantFrom(0.1, 0.5, 0.7, 1),
      (steps, max, queueMax, clientShare) => {
        const slots: Slots = createSlots({ max, queueMax, queueTimeoutMs: 0, clientShare })
        const all: Held[] = []
        const most = (whole: number, share: number): number =>
          share >= 1 ? whole : Math.max(1, Math.floor(whole * share))
        const mostArriving = most(max, clientShare >= 1 ? 1 : 0.5)
        const mostOfClient = most(max, clientShare)
        const mostArrivingOfClient = most(mostOfClient, clientShare >= 1 ? 1 : 0.5)
        for (const { act, client, line, arriving, which } of steps) {
          const inState = (state: Held['state']) => {
            const some = all.filter((one) => one.state === state)
            return some[which % Math.max(1, some.length)]
          }
          if (act === 'ask') {
            const one: Held = { request: { client, line, arriving }, state: 'waiting', leave: () => {} }
            all.push(one)
            const answer = (state: 'held' | 'over') => () => {
              expect(one.state).toBe('waiting')
              one.state = state
            }
            one.leave = slots.acquire(one.request, answer('held'), answer('over'))
          } else if (act === 'leave') {
            const one = inState('waiting')
            if (one === undefined) continue
            one.leave()
            one.state = 'over'
          } else {
            const one = inState('held')
            if (one === undefined) continue
            if (act === 'release') {
              one.state = 'over'
              slots.release(one.request)
            } else slots.arrived(one.request)
          }
          const held = count(all, 'held', () => true)
          const heldArriving = count(all, 'held', (request) => request.arriving)
          expect(slots.inFlight).toBe(held)
          expect(slots.queued).toBe(count(all, 'waiting', () => true))
          expect(held).toBeLessThanOrEqual(max)
          expect(slots.queued).toBeLessThanOrEqual(queueMax)
          expect(heldArriving).toBeLessThanOrEqual(mostArriving)
          for (const name of ['a', 'b', 'c', '']) {
            const own = count(all, 'held', (request) => request.client === name)
            const ownArriving = count(all, 'held', (request) => request.client === name && request.arriving)
            const waits = (isArriving: boolean) =>
              count(all, 'waiting', (request) => request.client === name && request.arriving === isArriving) >
              0
            expect(own).toBeLessThanOrEqual(mostOfClient)
            const hasRoom = held < max && own < mostOfClient
            expect(waits(false) && hasRoom).toBe(false)
            const hasRoomToArrive = heldArriving < mostArriving && ownArriving < mostArrivingOfClient
            expect(waits(true) && hasRoom && hasRoomToArrive).toBe(false)
          }
        }
        for (const one of all) if (one.state === 'waiting') one.leave()
        for (const one of all) if (one.state === 'held') slots.release(one.request)
        expect([slots.inFlight, slots.queued, slots.isContended()]).toEqual([0, 0, false])
      },
    ),
    { numRuns: 300 },
  )
})
