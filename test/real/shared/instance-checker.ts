import { createProcessChecker } from '../../properties/process-checker.ts'
import type { VersionedUpstream } from '../../properties/versioned-upstream.ts'
import { pause } from '../../support/origin.ts'
import { historyOf } from './instance-history.ts'
import { type Instance, type Instances, leaseMs } from './instances.ts'

type Checker = ReturnType<typeof createProcessChecker>

export type InstanceCheckerOptions = {
  readonly upstream: VersionedUpstream
  readonly instances: Instances
  readonly longestMs: number
  /** What was done to them until now. */
  readonly faults: () => readonly string[]
}

/** Readers, writers and purges at all running instances; a stale read is reported with its history. */
export const instanceChecker = ({
  upstream,
  instances,
  longestMs,
  faults,
}: InstanceCheckerOptions): Checker =>
  createProcessChecker({
    upstream,
    gateways: () => instances.all.map(({ gateway }) => gateway),
    longestMs,
    onStale: (read) => {
      void historyOf(instances, faults()).then((text) => process.stdout.write(`STALE ${read}\n${text}\n`))
    },
  })

const cutMs = 900

/** What can happen to instances that share a store; each ends what it began. */
export const instanceFaults = (instances: Instances, checker: () => Checker) => {
  const oneOf = (turn: number): Instance => instances.all[turn % instances.all.length] as Instance
  return {
    oneOf,
    acrossStop: (longerMs: number) => async (turn: number) => {
      const members = await instances.members()
      const stopped = members[turn % members.length]
      const other = members[(turn + 1) % members.length]
      if (stopped !== undefined && other !== undefined && stopped !== other)
        await checker().stopMidway(stopped, other, longerMs)
      for (const { line } of members) line.close()
    },
    lineIs:
      (state: 'broken' | 'silent', offset: number, ms = cutMs) =>
      async (turn: number) => {
        const { line } = oneOf(turn + offset)
        line.state = state
        await pause(ms)
        line.state = 'whole'
      },
    /** No instance reaches the store, and then one a little earlier than the other. */
    storePaused: (ms: number) => async (turn: number) => {
      const { line } = oneOf(turn)
      instances.redis.signal('SIGSTOP')
      await pause(ms)
      line.state = 'silent'
      instances.redis.signal('SIGCONT')
      await pause(leaseMs)
      line.state = 'whole'
    },
  }
}
