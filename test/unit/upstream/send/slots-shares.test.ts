import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SlotRequest, Slots } from '../../../../src/upstream/send/slots.ts'

const requestOf = (client: string, arriving = false): SlotRequest => ({ client, queue: '', arriving })

const slotsOf = (max: number, queueMax: number, clientShare: number) => {
  const slots = new Slots({ max, queueMax, queueTimeoutMs: 0, clientShare })
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
  expect(log.splice(0)).toEqual(['a1', 'a2', 'b1'])
  slots.release(requestOf('b'))
  expect(log).toEqual([])
  slots.release(requestOf('a'))
  expect(log).toEqual(['a3'])
})

test('what a client may have shrinks with what others hold and grows again when they give it back, and then those who wait get it', () => {
  const { slots, log, ask } = slotsOf(8, 8, 0.5)
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'b3']) ask(name, requestOf(name.charAt(0)))
  // Of the five that the first client leaves the second one has half.
  expect(log.splice(0)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2'])
  ask('a4', requestOf('a'))
  slots.release(requestOf('b'))
  expect(log.splice(0)).toEqual(['b3'])
  slots.release(requestOf('b'))
  expect(log.splice(0)).toEqual([])
  slots.release(requestOf('b'))
  expect(log.splice(0)).toEqual(['a4'])
})

test.each([1, 2, 5, 20, 40])(
  '%i clients that come in turn and take all they get leave what one client more would have',
  (count) => {
    const { slots, log, ask } = slotsOf(64, 10_000, 0.5)
    for (let round = 0; round < 64; round += 1)
      for (let client = 0; client < count; client += 1) ask('greedy', requestOf(`client ${client}`))
    const free = 64 - slots.inFlight
    expect(free).toBeGreaterThanOrEqual(Math.floor(64 / (count + 1)))
    log.length = 0
    ask('new', requestOf('a newcomer'))
    expect(log).toEqual(['new'])
  },
)

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

test('requests whose bodies are still arriving have half of the slots; one that has arrived makes way for the next', () => {
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
  act: fc.constantFrom(...(['ask', 'ask', 'ask', 'release', 'arrive', 'leave'] as const)),
  client: fc.constantFrom('a', 'b', 'c', ''),
  queue: fc.constantFrom('', 'batch'),
  arriving: fc.boolean(),
  which: fc.nat(50),
})

type Bounds = { readonly max: number; readonly queueMax: number; readonly clientShare: number }

const partOf = (whole: number, share: number): number =>
  share >= 1 ? whole : Math.max(1, Math.floor(whole * share))

/** Slots, and beside them a list of all requests from which the bounds are counted anew. */
const modelOf = ({ max, queueMax, clientShare }: Bounds) => {
  const slots: Slots = new Slots({ max, queueMax, queueTimeoutMs: 0, clientShare })
  const all: Held[] = []
  const arrivingShare = clientShare >= 1 ? 1 : 0.5

  const count = (state: Held['state'], willDo: (request: SlotRequest) => boolean = () => true): number =>
    all.filter((one) => one.state === state && willDo(one.request)).length
  const pick = (state: Held['state'], which: number): Held | undefined => {
    const some = all.filter((one) => one.state === state)
    return some[which % Math.max(1, some.length)]
  }
  const acts = {
    ask: (request: SlotRequest): void => {
      const one: Held = { request, state: 'waiting', leave: () => {} }
      all.push(one)
      const response = (state: 'held' | 'over') => () => {
        expect(one.state).toBe('waiting')
        one.state = state
      }
      one.leave = slots.acquire(request, response('held'), response('over'))
    },
    leave: (_: SlotRequest, which: number): void => {
      const one = pick('waiting', which)
      one?.leave()
      if (one !== undefined) one.state = 'over'
    },
    release: (_: SlotRequest, which: number): void => {
      const one = pick('held', which)
      if (one === undefined) return
      one.state = 'over'
      slots.release(one.request)
    },
    arrive: (_: SlotRequest, which: number): void => {
      const one = pick('held', which)
      if (one !== undefined) slots.arrived(one.request)
    },
  }
  const checkClient = (name: string, held: number, arriving: number): void => {
    const isOwn = (request: SlotRequest): boolean => request.client === name
    const waits = (isArriving: boolean): boolean =>
      count('waiting', (request) => isOwn(request) && request.arriving === isArriving) > 0
    const own = count('held', isOwn)
    const ownArriving = count('held', (request) => isOwn(request) && request.arriving)
    expect(own).toBeLessThanOrEqual(partOf(max, clientShare))
    const hasRoom = held < max && own < partOf(max - (held - own), clientShare)
    expect(waits(false) && hasRoom).toBe(false)
    const limit = partOf(max, arrivingShare)
    const hasRoomToArrive =
      arriving < limit && ownArriving < partOf(limit - (arriving - ownArriving), clientShare)
    expect(waits(true) && hasRoom && hasRoomToArrive).toBe(false)
    if (own === 0 && held < max) expect(waits(false)).toBe(false)
  }
  const check = (): void => {
    const held = count('held')
    const arriving = count('held', (request) => request.arriving)
    expect([slots.inFlight, slots.queued]).toEqual([held, count('waiting')])
    expect(held).toBeLessThanOrEqual(max)
    expect(slots.queued).toBeLessThanOrEqual(queueMax)
    expect(arriving).toBeLessThanOrEqual(partOf(max, arrivingShare))
    for (const name of ['a', 'b', 'c', '']) checkClient(name, held, arriving)
  }
  const end = (): void => {
    for (const one of all) if (one.state === 'waiting') one.leave()
    for (const one of all) if (one.state === 'held') slots.release(one.request)
    expect([slots.inFlight, slots.queued, slots.isContended()]).toEqual([0, 0, false])
  }
  return { acts, check, end }
}

test('never more than the bounds, each request answered once, and no slot free for which a request waits that may have it', () => {
  const bounds = fc.record({
    max: fc.integer({ min: 1, max: 6 }),
    queueMax: fc.integer({ min: 0, max: 8 }),
    clientShare: fc.constantFrom(0.1, 0.5, 0.7, 1),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), bounds, (steps, given) => {
      const { acts, check, end } = modelOf(given)
      for (const { act, client, queue, arriving, which } of steps) {
        acts[act]({ client, queue, arriving }, which)
        check()
      }
      end()
    }),
    { numRuns: 300 },
  )
})
