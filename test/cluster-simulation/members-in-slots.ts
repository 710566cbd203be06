import type { Slot } from './cluster.ts'
import type { Member } from './member.ts'
import { type Process, world } from './world.ts'

/** The process that would get a request now. */
export const processOf = (slot: Slot): Process | undefined =>
  slot.member === undefined || slot.isLeaving ? undefined : slot.process

type Sent = { readonly process: Process; readonly kind: string; readonly afterMs: number }

/** Runs in the process, unless it has ended meanwhile. */
export const arrive = (slot: Slot, { process, kind, afterMs }: Sent, run: (member: Member) => void): void => {
  world.schedule(world.now + afterMs, process, kind, () => {
    if (slot.process === process && slot.member !== undefined) run(slot.member)
  })
}
