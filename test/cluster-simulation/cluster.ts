import { startSupervisor } from '../../src/cluster/supervisor.ts'
import { linkToParent, type WorkerLink } from '../../src/cluster/worker-link.ts'
import { type Member, startMember } from './member.ts'
import type { Plan } from './plan.ts'
import { type Line, network } from './redis/network.ts'
import { RedisServer } from './redis/server.ts'
import simulatedCluster, { workerEnded, workers } from './replaced/cluster.ts'
import { type Machine, newMachine, type Process, world } from './world.ts'

/** A place in which one process after another runs. */
export type Slot = {
  readonly machine: Machine
  process: Process | undefined
  member: Member | undefined
  isLeaving: boolean
  /** Requests that have not been answered. */
  open: number
  /** The last time at which a fault concerned it. */
  disturbedAt: number
  /** The last time at which it was without contact to Redis. */
  cutAt: number
  /** The last time at which its process was away for so long that the others have forgotten it. */
  forgottenAt: number
}

const newSlot = (machine: Machine): Slot => ({
  machine,
  process: undefined,
  member: undefined,
  isLeaving: false,
  open: 0,
  disturbedAt: Number.NEGATIVE_INFINITY,
  cutAt: Number.NEGATIVE_INFINITY,
  forgottenAt: Number.NEGATIVE_INFINITY,
})

/** All processes of a run, and the servers of Redis. */
export const createCluster = ({ settings, workers: perInstance, instances }: Plan) => {
  const servers: RedisServer[] = []
  const slots: Slot[] = []
  /** By their parent: where its workers run. */
  const slotsOf = new Map<Process, readonly Slot[]>()
  let names = 0

  const addServer = (): RedisServer => {
    const server = new RedisServer(`redis${servers.length}`)
    servers.push(server)
    return server
  }
  const linesOf = (process: Process | undefined): readonly Line[] =>
    servers.flatMap(({ lines }) => [...lines].filter((line) => line.process === process))

  /** A process ends: nothing that it was about to do happens any more. */
  const kill = (process: Process): void => {
    if (!process.isAlive) return
    process.isAlive = false
    process.waiting = []
    for (const line of linesOf(process)) line.close()
    workerEnded(process)
    const slot = slots.find((one) => one.process === process)
    if (slot === undefined) return
    slot.process = undefined
    slot.member = undefined
    slot.isLeaving = false
    slot.open = 0
    if (world.isTraced) world.note(`${process.name} has ended`)
  }

  const begin = (slot: Slot, process: Process, link: WorkerLink | undefined): void => {
    slot.process = process
    void startMember(settings, link).then((member) => {
      if (slot.process !== process) return
      slot.member = member
      link?.ready(process.name)
      link?.onRequest(() => null)
    })
  }
  const startInstance = (slot: Slot): void => {
    if (slot.process !== undefined) return
    names += 1
    const process = world.createProcess(`instance${names}`, slot.machine)
    slot.process = process
    world.schedule(world.now, process, 'an instance starts', () => begin(slot, process, undefined))
  }
  const startParent = (own: readonly Slot[], machine: Machine): void => {
    names += 1
    const parent = world.createProcess(`parent${names}`, machine)
    slotsOf.set(parent, own)
    world.schedule(world.now, parent, 'a parent starts', () => {
      const clock = { now: () => world.wallOf(parent), monotonic: () => world.monotonicOf(parent) }
      void startSupervisor({
        workers: own.length,
        program: { file: '', args: [] },
        settings: () => null,
        through: (question, ask) => ask(question, 'brief'),
        end: () => undefined,
        stale: () => undefined,
        graceMs: 1_000,
        clock,
        report: () => undefined,
      })
    })
  }

  simulatedCluster.reset()
  workers.kill = kill
  workers.start = ({ process, parent, end }) => {
    const slot = slotsOf.get(parent)?.find((one) => one.process === undefined)
    if (slot === undefined) throw new Error('a worker too many')
    slot.process = process
    void linkToParent(end).then((link) => begin(slot, process, link))
  }
  if (settings.hasRedis) network.server = addServer()
  for (let i = 0; i < instances; i += 1) {
    const machine = newMachine()
    const own = Array.from({ length: Math.max(1, perInstance) }, () => newSlot(machine))
    slots.push(...own)
    if (perInstance > 0) startParent(own, machine)
    else for (const slot of own) startInstance(slot)
  }
  return {
    slots,
    at: (slot: number): Slot => {
      const found = slots[slot]
      if (found === undefined) throw new Error(`no slot ${slot}`)
      return found
    },
    addServer,
    linesOf,
    kill,
    startInstance,
    end: (): void => {
      for (const { process } of slots) if (process !== undefined) process.isAlive = false
      for (const parent of slotsOf.keys()) parent.isAlive = false
    },
  }
}

export type SimulatedCluster = ReturnType<typeof createCluster>
