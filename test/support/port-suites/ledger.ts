import { expect, test } from 'vitest'
import { longestQuarantine } from '../../../src/cache/invalidation.ts'
import type { LedgerPosition } from '../../../src/cache/shared-tier.ts'
import type { Ledger, LedgerPush, Synced } from '../../../src/cluster/ledger.ts'
import { pause } from '../origin.ts'

const nowhere: LedgerPosition = { epoch: '', applied: 0 }

/** What every ledger must do. `join` makes a member of one ledger that is empty at the start of each test. */
export const testLedger = (join: (member: string) => Ledger): void => {
  const listening = (member: string) => {
    const pushes: LedgerPush[] = []
    const ledger = join(member)
    ledger.listen((push) => pushes.push(push))
    return { ledger, pushes }
  }
  /** A member syncs again and again; leases and messages may take a few turns. */
  const until = async (ledger: Ledger, position: LedgerPosition, wanted: (said: Synced) => boolean) => {
    for (let tries = 0; tries < 200; tries += 1) {
      // A ledger that is not reached yet rejects.
      const said = await ledger.sync(position).catch(() => undefined)
      if (said !== undefined && wanted(said)) return said
      await pause(25)
    }
    throw new Error('the ledger never gave the expected answer')
  }
  const pushed = async (
    pushes: readonly LedgerPush[],
    wanted: (push: LedgerPush) => boolean,
  ): Promise<LedgerPush> => {
    for (let tries = 0; tries < 200; tries += 1) {
      const found = pushes.find(wanted)
      if (found !== undefined) return found
      await pause(25)
    }
    throw new Error('the push never arrived')
  }
  const both = async () => {
    const [a, b] = [listening('a'), listening('b')]
    for (const { ledger } of [a, b]) await until(ledger, nowhere, ({ lease }) => lease === 'granted')
    await until(a.ledger, nowhere, ({ members }) => members.length === 1)
    return [a, b] as const
  }
  const textsOf = ({ invalidations }: Synced): readonly string[] => invalidations.map(({ text }) => text)

  test('a member reads the notes after its position, oldest first', async () => {
    const [a, b] = await both()
    const first = await a.ledger.append(['t:1', 't:2'], [])
    await a.ledger.append(['t:3'], [])
    const { epoch, seq } = first
    expect(textsOf(await b.ledger.sync(nowhere))).toEqual(expect.arrayContaining(['t:1', 't:2', 't:3']))
    expect(textsOf(await b.ledger.sync({ epoch, applied: seq }))).toEqual(['t:3'])
  })

  test('a position in another epoch reads every remembered note', async () => {
    const [a, b] = await both()
    const { seq } = await a.ledger.append(['t:1'], [])
    expect(textsOf(await b.ledger.sync({ epoch: 'of-another-ledger', applied: seq }))).toContain('t:1')
  })

  test('a note that is appended again is remembered once, under its last number', async () => {
    const [a, b] = await both()
    await a.ledger.append(['t:1'], [])
    await a.ledger.append(['t:2'], [])
    const last = await a.ledger.append(['t:1'], [])
    const { invalidations } = await b.ledger.sync(nowhere)
    expect(invalidations.filter(({ text }) => text.startsWith('t:'))).toEqual([
      { text: 't:2', seq: last.seq - 1 },
      { text: 't:1', seq: last.seq },
    ])
  })

  test('a member that has missed forgotten notes gets one hold in place of theirs', async () => {
    const [a, b] = await both()
    const { epoch, seq } = await a.ledger.append(['t:1', 'h60000:1'], [])
    const many = Array.from({ length: 17_000 }, (_, at) => `t:many ${at}`)
    const last = await a.ledger.append(many, [])
    for (const position of [nowhere, { epoch, applied: seq - 1 }]) {
      const [hold = ''] = textsOf(await b.ledger.sync(position)).filter((text) => text.startsWith('h'))
      expect(hold).toMatch(/^h\d+:$/)
      expect(longestQuarantine([hold])).toBeGreaterThan(30_000)
      expect(longestQuarantine([hold])).toBeLessThanOrEqual(60_000)
    }
    expect(await b.ledger.sync({ epoch, applied: last.seq })).toMatchObject({ invalidations: [] })
  })

  test('so it is for what a member had begun that is forgotten', async () => {
    const [a, b] = await both()
    await a.ledger.begin('a#1', ['h60000:1', 't:2'])
    await b.ledger.forget('a')
    await b.ledger.append(
      Array.from({ length: 17_000 }, (_, at) => `t:many ${at}`),
      [],
    )
    expect(longestQuarantine(textsOf(await b.ledger.sync(nowhere)))).toBeGreaterThan(30_000)
  })

  test('the other members get a push of what was noted, with its writer and number', async () => {
    const [a, b] = await both()
    const { epoch, seq } = await a.ledger.append(['t:1'], [])
    const push = await pushed(b.pushes, (one) => one.kind !== 'applied' && one.seq === seq)
    expect(push).toMatchObject({ epoch, seq, writer: 'a' })
  })

  test('an acknowledgement reaches the writer', async () => {
    const [a, b] = await both()
    const { epoch, seq } = await a.ledger.append(['t:1'], [])
    b.ledger.acknowledge({ epoch, applied: seq }, 3, 'a')
    const push = await pushed(a.pushes, ({ kind }) => kind === 'applied')
    expect(push).toEqual({ kind: 'applied', epoch, seq, member: 'b', entries: 3 })
  })

  test('the position that a member syncs with is known to the others', async () => {
    const [a, b] = await both()
    const { epoch, seq } = await a.ledger.append(['t:1'], [])
    await b.ledger.sync({ epoch, applied: seq })
    const { members } = await a.ledger.sync(nowhere)
    expect(members).toMatchObject([{ member: 'b', applied: seq }])
  })

  test('what a member began and did not settle is noted when the member is forgotten', async () => {
    const [a, b] = await both()
    await a.ledger.begin('a#1', ['t:settled'])
    await a.ledger.begin('a#2', ['t:unsettled'])
    await a.ledger.append([], ['a#1'])
    await b.ledger.forget('a')
    const said = await until(b.ledger, nowhere, ({ members }) => members.length === 0)
    expect(textsOf(said)).toContain('t:unsettled')
    expect(textsOf(said)).not.toContain('t:settled')
  })

  test('a member that leaves with everything delivered is no member any more', async () => {
    const [a, b] = await both()
    await a.ledger.leave(true)
    const { members } = await until(b.ledger, nowhere, (said) => said.members.length === 0)
    expect(members).toEqual([])
  })
}
