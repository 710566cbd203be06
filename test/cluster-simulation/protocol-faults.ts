import type { ProtocolFault } from './bundle.ts'
import { faultIn as of } from './fault-in.ts'
import { frontFaults } from './front-faults.ts'
import { requestFaults } from './request-faults.ts'

const coherence = of('cluster/coherence.ts')
const lease = of('cluster/protocol/lease.ts')
const acknowledgements = of('cluster/protocol/acknowledgements.ts')
const backlog = of('cluster/protocol/backlog.ts')
const contact = of('cluster/protocol/contact.ts')
const register = of('cluster/protocol/register-write.ts')
const script = of('cluster/redis/ledger-scripts.ts')
const tier = of('cluster/redis/tier.ts')
const sharedTier = of('cache/shared-tier.ts')
const sharedStore = of('cluster/shared-store.ts')
const memoryLedger = of('cluster/workers/memory-ledger.ts')
const invalidation = of('cache/invalidation.ts')
const reads = of('cache/read.ts')
const afterOutcome = of('cache/fetch/after-outcome.ts')
const membership = of('gateway/parts/membership.ts')
const write = of('exchange/write.ts')
const writeInvalidator = of('exchange/write/write-invalidator.ts')
const writeState = of('exchange/write/write-progress.ts')
const attempt = of('upstream/send/attempt.ts')
const openResponse = of('exchange/write/open-response.ts')

/** Leases: who may answer from memory, and until when. */
const leases: readonly ProtocolFault[] = [
  coherence(
    'lease: counts from the reply, not from the request',
    'this.#lease.granted(sent)',
    'this.#lease.granted(readClock(this.#options.clock))',
  ),
  lease('lease: lasts twice as long', 'leaseMs * usedShare', 'leaseMs * 2'),
  lease(
    'lease: as long as granted, whatever the clock of the machine',
    'const usedShare = 0.95',
    'const usedShare = 1',
  ),
  coherence(
    'lease: granted whatever the ledger says',
    "if (reply.lease === 'granted') {",
    'if (reply.seq >= 0) {',
  ),
  lease(
    'lease: not by the wall clock, which goes on while a machine is suspended',
    'at.monotonic < until.monotonic && at.now < until.now',
    'at.monotonic < until.monotonic',
  ),
  lease(
    'lease: not by the monotonic clock, which nobody sets',
    'at.monotonic < until.monotonic && at.now < until.now',
    'at.now < until.now',
  ),
  coherence('lease: goes on with a new ledger', '      this.#lease.end()\n'),
  of('cache/policy/reuse.ts')(
    'lease: not needed for a hit',
    'lease === undefined || lease.isCurrent(at)',
    'lease === undefined || at.now > 0',
  ),
  reads(
    'lease: not needed to join a fetch',
    '(lease === undefined || lease.isCurrent(readClock(clock))) &&\n    ',
  ),
  membership(
    'lease: not needed to look into the tier',
    'mayTrust: () => mayTrust(readClock(clock))',
    'mayTrust: () => true',
  ),
  script('lease: although another member is silent', 'silent = true end', 'silent = false end'),
  script(
    'lease: from a young ledger',
    "if now - born < forgetAfter then said = 'young-ledger'",
    "if now < born then said = 'young-ledger'",
  ),
  script(
    'lease: without a proof',
    "elseif not proven then said = 'unproven'",
    "elseif now < 0 then said = 'unproven'",
  ),
]

/** Beats: until when the others have to wait for a member. */
const beats: readonly ProtocolFault[] = [
  script('beat: of a message of any age', 'proof > 0 and now - proof <= lease', 'proof > 0'),
  script('beat: by the time of another server', 'local proven = ARGV[10] == epoch and ', 'local proven = '),
  script('beat: does not grow', 'beat = math.max(beat + 1, now)', 'beat = math.max(1, beat)'),
  script(
    'beat: is repeated by a member that was forgotten',
    'beat = math.max(beat + 1, now)',
    'beat = beat + 1',
  ),
  script('beat: without a proof', 'if proven then\n', 'if now > 0 then\n'),
  acknowledgements(
    'beat: the first one counts',
    'if (beats.get(member)?.beat !== beat) beats.set',
    'if (!beats.has(member)) beats.set',
  ),
  acknowledgements(
    'wait: not for a member that is behind',
    '(beats.get(member)?.seenAt ?? now) + leaseMs',
    '(beats.get(member)?.seenAt ?? now)',
  ),
  acknowledgements(
    'wait: an acknowledgement of an earlier note counts',
    'wait.epoch !== epoch || applied < wait.seq ||',
    'wait.epoch !== epoch ||',
  ),
  acknowledgements(
    'wait: an acknowledgement of another epoch counts',
    'wait.epoch !== epoch || applied',
    'applied',
  ),
  acknowledgements(
    'wait: only for members of this ledger, one lease',
    'const formerLeases = 3',
    'const formerLeases = 0',
  ),
  acknowledgements(
    'wait: not for members of the former ledger',
    'if (quietUntil > now) deadlines.set(former, quietUntil)\n',
  ),
  coherence(
    'wait: not after a young ledger was found',
    "if (reply.lease === 'young-ledger') this.#acknowledgements.quiet(received + this.#options.leaseMs)",
  ),
  coherence(
    'wait: not after a note went to a new ledger',
    'if (epoch !== this.#position.epoch) this.#acknowledgements.quiet(received + this.#options.leaseMs)',
  ),
  coherence(
    'wait: a write is answered before the others have its notes',
    'const end = await acknowledged',
    'const end = await Promise.race([acknowledged, Promise.resolve({ all: true, entries: 0 } as const)])',
  ),
  write('wait: a write is answered before its notes are sent', '  await Promise.all(write.awaited)\n'),
]

/** Being cut off. */
const cutOff: readonly ProtocolFault[] = [
  contact('cut off: one lease is enough', 'const isolatedAfterLeases = 3', 'const isolatedAfterLeases = 1'),
  contact(
    'cut off: the time of a suspension counts',
    'if (now - lastTick > leaseMs && failingSince !== undefined) failingSince = now\n',
  ),
  contact('cut off: decided before the clock was looked at', 'now - lastTick <= leaseMs &&\n'),
  backlog(
    'cut off: what was not announced is forgotten',
    '      waiting = []\n    },\n  }',
    '      waiting = []\n      invalidations = new Set()\n    },\n  }',
  ),
  register(
    'cut off: writes are sent although they should be refused',
    'if (!parts.refusesUnacknowledged || !mayMatter)',
    'if (parts.refusesUnacknowledged || !mayMatter)',
  ),
  coherence('cut off: the notes of a failed append are lost', '        this.#backlog.putBack(batch)\n'),
  coherence(
    'cut off: a lease is asked for before the notes are delivered',
    'if (!(await this.#deliver())) return',
    'void this.#deliver()',
  ),
  script(
    'cut off: a silent member is forgotten without a note',
    'forget(one[1], true, remembered)',
    'forget(one[1], false, remembered)',
  ),
  script('cut off: all were, and one is forgotten for it', 'math.max(one[4], resumed)', 'one[4]'),
  script(
    'cut off: a young ledger that was unreachable does not begin anew',
    'if last - born < forgetAfter then born = now end',
  ),
  acknowledgements(
    'close: what still waits is acknowledged',
    'await Promise.all([...waits].map(({ acknowledged: whenAcknowledged }) => whenAcknowledged))',
    'for (const wait of waits) wait.end(false)',
  ),
  script(
    'cut off: a worker that ended counts as heard',
    'forget(ARGV[4], true, tonumber(ARGV[5]))',
    'forget(ARGV[4], false, tonumber(ARGV[5]))',
  ),
]

/** The epoch: what the ledger may have lost. */
const epochs: readonly ProtocolFault[] = [
  script('epoch: another process has the data', 'known[1] and known[2] == run and', 'known[1] and'),
  script('epoch: the server became the master again', ' and known[6] == term'),
  script('epoch: the log is gone', "  and redis.call('ZSCORE', log, '@' .. known[1])\n"),
  script('epoch: the members are gone', "  and redis.call('HGET', members, '@') == known[1]\n"),
  script(
    'epoch: the unsettled writes are gone',
    "\n  and redis.call('HGET', pending, '@') == known[1] then",
    ' then',
  ),
  script(
    'epoch: stays when a member is ahead',
    'if ARGV[4] == epoch and tonumber(ARGV[5]) > seq then makeAnew() end',
  ),
  coherence('epoch: a member keeps its memory', '      this.#options.dropAll(this.#position)\n'),
  coherence(
    'epoch: a member keeps what it stored while the ledger was young',
    'if (this.#isFirstLease) this.#options.dropAll(this.#position)\n',
  ),
  coherence(
    'epoch: notes that were forgotten are not missed',
    'epoch !== this.#position.epoch || this.#position.applied < floor',
    'epoch !== this.#position.epoch',
  ),
  coherence(
    'epoch: a push of another ledger is applied',
    'if (epoch !== this.#position.epoch || seq !== this.#position.applied + 1) {',
    'if (seq !== this.#position.applied + 1) {',
  ),
  coherence(
    'epoch: a new ledger does not hear of writes that may still be carried out',
    '        this.#quarantines.current(this.#options.clock.monotonic()).map(encodeInvalidation),\n',
    '        [],\n',
  ),
  tier('epoch: an entry of another ledger is used', 'ofEpoch !== epoch || numbers', 'numbers'),
  tier('epoch: the tier keeps entries from before what was missed', '      numbers.restart(floor)\n'),
  membership(
    'epoch: the memory keeps its entries',
    "          cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })\n",
  ),
]

/** Notes that get lost, and their numbers. */
const invalidations: readonly ProtocolFault[] = [
  coherence(
    'note: in the reply to a sync, not applied',
    'const entries = this.#applyAll(news)',
    'const entries = 0',
  ),
  coherence(
    'note: in a push, not applied',
    'const entries = this.#applyAll(push.invalidations.map((text) => ({ seq, text })))',
    'const entries = 0',
  ),
  coherence(
    'note: a gap is not seen',
    'if (epoch !== this.#position.epoch || seq !== this.#position.applied + 1) {',
    'if (epoch !== this.#position.epoch) {',
  ),
  coherence(
    'note: one of another member is taken for an own one',
    'batch.invalidations.length > 0 && epoch === this.#position.epoch\n',
    'epoch === this.#position.epoch\n',
  ),
  coherence(
    'note: those before an own one are skipped',
    'if (isOwn && seq === this.#position.applied + 1) this.#advance(seq)',
    'if (isOwn) this.#advance(seq)',
  ),
  coherence(
    'note: an own one is not applied again',
    'if (batch.invalidations.length > 0) this.#applyAll(batch.invalidations.map((text) => ({ seq, text })))\n',
  ),
  coherence(
    'note: acknowledged before it is applied',
    '      void this.#sync()\n      return\n    }\n    const entries',
    '      this.#options.ledger.acknowledge({ epoch, applied: seq }, 0, push.writer)\n      void this.#sync()\n      return\n    }\n    const entries',
  ),
  script('note: the next number is left out of a reply', 'and applied or -1', 'and applied + 1 or -1'),
  script('note: the floor stays where it was', '    floor = tonumber(last[2])\n'),
  script('note: unsettled writes are dropped', 'notes[#notes + 1] = text\n', 'seen[text] = true\n'),
  script(
    'note: an append settles all writes',
    "for _, write in ipairs(cjson.decode(ARGV[5])) do redis.call('HDEL', pending, write) end",
    "redis.call('DEL', pending)\nredis.call('HSET', pending, '@', epoch)",
  ),
  script(
    'note: unsettled writes of a member that never had a lease',
    "redis.call('HSETNX', members, me, '0:0:' .. number(now))\n",
  ),
  script(
    'note: of a member that leaves',
    'forget(me, false, tonumber(ARGV[4]))',
    "redis.call('HDEL', members, me)",
  ),
  register(
    'note: a write is not announced',
    'await parts.ledger.begin(write, invalidations.map(encodeInvalidation))',
    'await Promise.resolve(invalidations)',
  ),
  register(
    'note: a write is announced without what it may change',
    'parts.ledger.begin(write, invalidations.map(encodeInvalidation))',
    'parts.ledger.begin(write, [])',
  ),
  writeInvalidator(
    'note: a write is settled although it goes on',
    'writeRegistry?.broadcast(invalidations)\n',
    'writeRegistry?.broadcast(invalidations, this.#registered)\n',
  ),
  writeInvalidator(
    'note: what a write changes while it responds',
    'this.#finish(union(this.#headInvalidations, this.#invalidationsSoFar()))',
    'this.#finish([])',
  ),
  memoryLedger(
    'note: unsettled writes of a worker are dropped',
    '      recordAll(name, [...new Set(pending.flat())])\n',
  ),
  memoryLedger(
    'note: the parent keeps the order of the first append',
    'if (!log.delete(text)) characters += text.length\n',
  ),
  memoryLedger('note: the floor of the parent stays where it was', '      floor = at\n'),
  memoryLedger(
    'note: the parent leaves the next number out of a reply',
    'at > applied)',
    'at > applied + 1)',
  ),
  script('note: a hold that the ledger has forgotten', 'applied < floor and', 'false and'),
  script(
    'note: a forgotten hold of a process that has ended',
    'if tonumber(text) then quarantine(tonumber(text))',
    'if tonumber(text) then seen[text] = true',
  ),
  memoryLedger('note: a hold that the parent has forgotten', 'applied < floor && forMs > 0', 'forMs > 1e9'),
  sharedStore(
    'note: of a tag, unknown to the tier',
    'tags.invalidate(invalidation.tag, seq)',
    'tags.invalidate(invalidation.tag, 0)',
  ),
  sharedStore('note: of everything, unknown to the tier', 'tags.invalidateAll(seq)', 'tags.invalidateAll(0)'),
  membership('note: unknown to the tier', '          shared?.invalidated(invalidated)\n'),
]

/** States of a write that other processes cannot see. */
const states: readonly ProtocolFault[] = [
  writeInvalidator(
    'open: nothing is dropped before a piece',
    'beforePiece: () => this.#dropBeforePiece()',
    'beforePiece: () => undefined',
  ),
  writeInvalidator(
    'open: a piece is forwarded before the others have dropped what it shows',
    'return writeRegistry?.broadcast(invalidations)\n',
    'void writeRegistry?.broadcast(invalidations)\n    return undefined\n',
  ),
  openResponse(
    'open: a piece does not wait',
    'if (before === undefined) next(null, piece)',
    'if (before !== null) next(null, piece)',
  ),
  openResponse(
    'open: the end does not wait',
    'if (before === undefined) next()',
    'if (before !== null) next()',
  ),
  writeInvalidator(
    'open: what the own process fetches meanwhile is stored',
    'const release = cache.quarantineUntilReleased(tagsOf(invalidations))',
    'const release = cache.quarantineUntilReleased([])',
  ),
  writeInvalidator(
    'broken off: what the head said is all that is dropped',
    'writeInvalidations(this.#requestContext, undefined)),',
    '[]),',
  ),
  writeState(
    'partly sent: counts as not sent',
    "if (this.#state === 'not-sent') this.#advance('partly-sent')",
    "if (this.#state === 'open') this.#advance('partly-sent')",
  ),
  writeState(
    'partly sent: breaks off as not sent',
    "'partly-sent': ['sent', 'open', 'broken-off']",
    "'partly-sent': ['sent', 'open']",
  ),
  writeState('sent: does not break off', "sent: ['open', 'broken-off']", "sent: ['open']"),
]

/** Fences around responses that are being fetched. */
const fences: readonly ProtocolFault[] = [
  invalidation(
    'fence: a response that was requested before a write is stored',
    '    this.#log.record(tags, byRequest)\n    this.#builds',
    '    this.#builds',
  ),
  invalidation(
    'fence: a response that was requested before a purge is stored',
    '    this.#record(selector)\n',
  ),
  invalidation(
    'fence: nothing is held after an unknown outcome',
    '    this.#quarantined.addUntil(tags, now, now + forMs)\n',
  ),
  invalidation(
    'fence: a fetch is not cut',
    'entries += this.#store.delete(key)\n        cut += this.#fetches.cut(key)',
    'entries += this.#store.delete(key)',
  ),
  reads(
    'fence: a fetch from before a write is joined',
    '(fetch.since === log.sequence || !log.invalidatedSince(expectedTags(read), fetch.since))',
    'fetch.since >= 0',
  ),
  afterOutcome(
    'fence: a response from before a write is shared',
    '    if (since !== fetch.since && isSuperseded(this.#log, stored, fetch.since)) return retryTogether\n',
  ),
  afterOutcome(
    'fence: a stream from before a write is followed',
    "sharing === 'share' && (isLeader || since === fetch.since)",
    "sharing === 'share'",
  ),
  tier('fence: an outdated entry of the tier is used', "isSuperseded ? 'outdated' : record", 'record'),
  sharedTier(
    'fence: an entry of the tier is as new as the moment at which it is stored',
    'offer(outcome, since, fetch)\n',
    'offer(outcome, tier.position, fetch)\n',
  ),
  sharedTier(
    'fence: an entry of the tier is stored although a note came meanwhile',
    'storage.storeIfCurrent(fetch.read, entry, fetch.since)',
    'storage.storeIfCurrent(fetch.read, entry, Number.MAX_SAFE_INTEGER)',
  ),
  writeInvalidator(
    'fence: the own memory keeps what a write changes',
    '    invalidateWrite(this.#deps.cache, this.#requestContext, invalidations)\n',
  ),
]

/** What is known of how far a request got on its connection, and how often it was sent. */
const attempts: readonly ProtocolFault[] = [
  attempt(
    'attempt: a piece of its content that was sent is not told',
    'if (!this.#ended) this.#request.progress?.partlySent()',
  ),
  attempt(
    'attempt: a request without content that was sent is not told',
    '      this.#request.progress?.sent()\n      this.#awaitHead()',
    '      this.#awaitHead()',
  ),
  of('upstream/send/upstream-request.ts')(
    'attempt: a response to what was sent twice looks like one to what was sent once',
    'this.#everSent ? { ...response, isRepeated: true } : response',
    'response',
  ),
]

export const protocolFaults: readonly ProtocolFault[] = [
  ...leases,
  ...beats,
  ...cutOff,
  ...epochs,
  ...invalidations,
  ...states,
  ...fences,
  ...attempts,
  ...frontFaults,
  ...requestFaults,
]
