/** A test that fails with a fault in the code: its file, and its name. */
export type FindingTest = { readonly file: string; readonly name: string }

const of =
  (file: string) =>
  (name: string): FindingTest => ({ file: `test/${file}`, name })

const anotherLedger = of('unit/cluster/another-ledger.test.ts')
const spread = of('unit/cluster/broadcast.test.ts')
const longTexts = of('unit/cluster/long-invalidations.test.ts')
const windows = of('real/redis-ledger-windows.real.test.ts')
const redisPorts = of('real/redis-ports.real.test.ts')
const memoryPorts = of('unit/exchange/ports-in-memory.test.ts')
const progress = of('unit/exchange/write/write-progress.test.ts')
const writeSteps = of('unit/exchange/write.test.ts')
const tier = of('unit/cache/shared-tier.test.ts')
const receivers = of('gateway/downstream.long.test.ts')

/**
 * Faults that the simulation finds in no seed, or in one of many thousands: mostly because another step guards the same. `--plant
 * --by-tests` plants each, and runs the test.
 */
export const foundByTests: Readonly<Record<string, FindingTest>> = {
  'lease: goes on with a new ledger': anotherLedger('a lease ends with the ledger that granted it'),
  'beat: by the time of another server': windows(
    'acknowledgements of another server do not count, whatever its clock shows',
  ),
  'beat: is repeated by a member that was forgotten': windows(
    'a member that comes back after it was forgotten beats nothing that was seen of it before',
  ),
  'wait: not after a note went to a new ledger': anotherLedger(
    'a process that has been no member yet waits for the leases of the ledger before',
  ),
  'cut off: decided before the clock was looked at': spread(
    'a process that was suspended while it searched for the ledger searches again before it acknowledges a write',
  ),
  'cut off: writes are sent although they should be refused': spread(
    'a write that cannot be announced is refused where configured, and this is reported once',
  ),
  'cut off: a lease is asked for before the notes are delivered': anotherLedger(
    'a member asks for no lease while what it has changed cannot be delivered',
  ),
  'close: what still waits is acknowledged': spread(
    'a member that closes acknowledges a change when the others have applied it, and not before',
  ),
  'epoch: the log is gone': windows('a ledger that has lost its log is another one'),
  'epoch: the unsettled writes are gone': windows('a ledger that has lost its pending is another one'),
  'epoch: stays when a member is ahead': windows(
    'a position that the ledger has not come to yet makes it another one',
  ),
  'epoch: a member keeps what it stored while the ledger was young': of('unit/cluster/young-ledger.test.ts')(
    'what was stored while the ledger was young is dropped before it is served',
  ),
  'epoch: a push of another ledger is applied': anotherLedger(
    'what another ledger pushes is not applied, and does not count as read',
  ),
  'epoch: a new ledger does not hear of writes that may still be carried out': anotherLedger(
    'a new ledger gets the writes that may still be carried out',
  ),
  'note: an append settles all writes': redisPorts(
    'what a member began and did not settle is noted when the member is forgotten',
  ),
  'note: unsettled writes of a member that never had a lease': windows(
    'what a process began that has never read the ledger is noted when it falls silent',
  ),
  'note: of a member that leaves': windows(
    'no member waits for one that has left, and its unsettled writes have an unknown outcome',
  ),
  'note: a write is settled although it goes on': writeSteps(
    'a write is settled by its end, and by none of its pieces',
  ),
  'note: the parent keeps the order of the first append': memoryPorts(
    'a note that is appended again is remembered once, under its last number',
  ),
  'note: the floor of the parent stays where it was': longTexts(
    'a ledger of workers stores texts up to 8 MiB; its floor shows members that older ones are forgotten',
  ),
  'note: the parent leaves the next number out of a reply': memoryPorts(
    'a member reads the notes after its position, oldest first',
  ),
  'note: a hold that the ledger has forgotten': redisPorts(
    'a member that has missed forgotten notes gets one hold in place of theirs',
  ),
  'note: a forgotten hold of a process that has ended': redisPorts(
    'so it is for what a member had begun that is forgotten',
  ),
  'note: a hold that the parent has forgotten': memoryPorts(
    'a member that has missed forgotten notes gets one hold in place of theirs',
  ),
  'open: what the own process fetches meanwhile is stored': of('gateway/write-states.test.ts')(
    'nothing that the write may change is stored, and reads of it do not hit',
  ),
  'partly sent: breaks off as not sent': progress('partly-sent, breakOff: broken-off'),
  'sent: does not break off': progress('sent, breakOff: broken-off'),
  'fence: a fetch from before a write is joined': of('unit/cache/invalidation.long.test.ts')(
    'a reader after an invalidation does not join a fetch that started before it',
  ),
  'fence: an entry of the tier is as new as the moment at which it is stored': tier(
    'an entry of the tier is as new as the moment at which it was requested',
  ),
  'fence: an entry of the tier is stored although a note came meanwhile': tier(
    'an entry of the tier is stored only if nothing has invalidated it since the read began',
  ),
  'fence: the own memory keeps what a write changes': writeSteps(
    'after a failure with an unknown outcome the stored responses are held back',
  ),
  'epoch: the tier keeps entries from before what was missed': of('unit/cluster/invalidated-tags.test.ts')(
    'what the ledger has forgotten may have named any tag of an entry from before',
  ),
  'front: what another process has changed is not purged, although it may have ended': of(
    'unit/gateway/parts/downstreams.test.ts',
  )('what other gateways have changed is purged some seconds later: they may have ended before'),
  'front: a receiver that was restarted counts as informed': of('gateway/downstream-restarts.long.test.ts')(
    'is sent everything after a restart, before the next write is acknowledged',
  ),
  'front: stores while it is behind': receivers('is behind, and nothing may be stored until it is back'),
  'front: stores what is served stale': receivers(
    'is not a stale response, which a purge may have marked so',
  ),
}

/** Faults that change nothing that a client or an operator can see, and why. */
export const equivalent: Readonly<Record<string, string>> = {
  'fence: a fetch is not cut':
    'a reader compares the tags of the fetch with the log before it joins, and cuts it then',
}
