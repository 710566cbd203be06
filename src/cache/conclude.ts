import type { Readable } from 'node:stream'
import type { Clock } from '../clock.ts'
import { varyKey } from '../http/vary.ts'
import type { Moment } from './age.ts'
import type { Answers } from './answers.ts'
import type { CacheEvent } from './events.ts'
import type { Flights } from './flights.ts'
import type { Landing } from './landing.ts'
import type { PassMemo } from './pass-memo.ts'
import { takesWhole } from './reader-answer.ts'
import { mayServeOnError } from './reuse.ts'
import { again, answered, type Landed, mayShare, type Verdict, type Wait } from './verdict.ts'

export type ConcludeOptions = {
  readonly flights: Flights
  readonly answers: Answers
  readonly passes: PassMemo
  readonly judge: (landing: Landed, wait: Wait) => Verdict
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

type Filling = Extract<Landing, { kind: 'filling' }>

/** How a reader takes part in a fill. */
type Part = 'not' | 'alone' | 'follow' | 'wait'

/**
 * Bytes as they come are for a reader who wants all of them and nothing else: preconditions and ranges are met by a
 * complete content, and so is who came after a write, since what is in it tells whether it shows the state before; and
 * who has something stale to fall back on waits whether it is needed.
 */
const partIn = ({ sketch, fill }: Filling, wait: Wait, at: Moment): Part => {
  const { read, need, leads, since, flight } = wait
  if (fill.overflowed) return 'alone'
  if (!leads && varyKey(sketch.varyNames, read) !== sketch.varyKey) return 'not'
  if (!leads && !mayShare(sketch, at)) return 'alone'
  const { stored } = need
  const fallsBack = stored !== undefined && mayServeOnError(stored, 'unreachable', read.policy.profile, at)
  return takesWhole(read) && !fallsBack && (leads || since === flight.began) ? 'follow' : 'wait'
}

/** Makes the function that tells what one reader gets of a forward that has landed. */
export const createConclude = (
  options: ConcludeOptions,
): ((landing: Landing, wait: Wait) => Verdict | Promise<Verdict>) => {
  const { flights, answers, passes, judge, clock, report } = options
  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  /** Later readers need not wait to learn that it is too long to be shared. */
  const noteOverflow = ({ complete, fill }: Filling, { read }: Wait): void => {
    void complete.then(({ kind }) => {
      if (kind === 'overflowed' && !fill.crowded) passes.note(read.key, clock.monotonic())
    })
  }

  const follow = (landing: Filling, wait: Wait, at: Moment): Verdict => {
    const { read, need, leads, flight } = wait
    const content = landing.fill.reader().once('close', () => flights.leave(flight))
    if (leads) passes.forget(read.key)
    else report({ kind: 'collapsed', service: read.service })
    return answered(answers.streamed(landing, content, read, need.reason, !leads, at))
  }

  const waitForEnd = async (
    landing: Filling,
    wait: Wait,
    reserved: Readable | undefined,
  ): Promise<Verdict> => {
    const { read, need, flight } = wait
    const last = await flights.waitForEnd(flight, landing.complete, read.signal)
    if (last.kind === 'filling') throw new TypeError('a fill ended as another')
    if (last.kind !== 'overflowed' || reserved === undefined) {
      reserved?.destroy()
      return judge(last, wait)
    }
    // It asked for it: a second forward would bring the same.
    const { fill, sketch, ownFields, upstreamStatus } = landing
    const fields = [...sketch.fields, ...ownFields]
    const response = { kind: 'response', status: sketch.status, fields, content: reserved } as const
    return answered(
      answers.own(
        { kind: 'own', response, upstreamStatus, reason: fill.crowded ? 'no-room' : 'too-large' },
        read,
        need.reason,
        moment(),
      ),
    )
  }

  const takePart = async (landing: Filling, wait: Wait): Promise<Verdict> => {
    const at = moment()
    if (wait.leads) noteOverflow(landing, wait)
    const part = partIn(landing, wait, at)
    if (part === 'follow') return follow(landing, wait, at)
    if (part !== 'wait') {
      flights.leave(wait.flight)
      return again(part === 'alone')
    }
    const reserved = wait.leads ? landing.fill.reader() : undefined
    try {
      return await waitForEnd(landing, wait, reserved)
    } catch (error) {
      reserved?.destroy()
      throw error
    }
  }

  return (landing, wait) => (landing.kind === 'filling' ? takePart(landing, wait) : judge(landing, wait))
}
