import { EventEmitter } from 'node:events'
import type { ToParent, ToWorker } from '../../../src/cluster/worker-link.ts'
import { network } from '../redis/network.ts'
import { currentProcess, type Process, world } from '../world.ts'

// What stands in the bundle of the simulation in place of `node:cluster`.

/** The worker's end of the channel to its parent. */
export type WorkerEnd = {
  send(message: ToParent): void
  listen(take: (message: ToWorker) => void): void
}

type Started = { readonly process: Process; readonly parent: Process; readonly end: WorkerEnd }

/** Set by the run: starts the program of a worker, and ends its process. */
export const workers = {
  start: (_: Started): void => undefined,
  kill: (_: Process): void => undefined,
}

/** Messages in one direction, in order. Plain data, as JSON has it. */
const createQueue = (to: Process, purpose: string, take: (message: unknown) => void) => {
  const random = world.randomFor(`${purpose} ${to.name}`)
  let at = 0
  let isOpen = true
  return {
    send: (message: unknown): void => {
      if (!isOpen) return
      const text = JSON.stringify(message)
      at = Math.max(at, world.now) + network.delay(random)
      world.schedule(at, to, purpose, () => take(JSON.parse(text)))
    },
    close: (): void => {
      isOpen = false
    },
  }
}

class SimulatedWorker extends EventEmitter {
  readonly id: number
  readonly process: { readonly pid: number; kill(signal: string): void }
  readonly #child: Process
  readonly #toWorker: ReturnType<typeof createQueue>
  #take: (message: ToWorker) => void = () => undefined

  constructor(id: number) {
    super()
    this.id = id
    const parent = currentProcess()
    const child = world.createProcess(`${parent.name}.${id}`, parent.machine)
    this.#child = child
    this.process = { pid: id, kill: () => workers.kill(child) }
    this.#toWorker = createQueue(child, 'from parent', (message) => this.#take(message as ToWorker))
    const toParent = createQueue(parent, `from worker ${id}`, (message) => this.emit('message', message))
    const end: WorkerEnd = {
      send: (message) => toParent.send(message),
      listen: (take) => {
        this.#take = take
      },
    }
    world.schedule(world.now + 1, child, 'a worker starts', () =>
      workers.start({ process: child, parent, end }),
    )
    ended.set(child, () => {
      this.#toWorker.close()
      toParent.close()
      const at = world.now + network.delay(parent.random)
      world.schedule(at, parent, 'a worker has ended', () => this.emit('exit', null, 'SIGKILL'))
    })
  }

  isConnected(): boolean {
    return this.#child.isAlive
  }

  send(message: ToWorker): void {
    this.#toWorker.send(message)
  }
}

const ended = new WeakMap<Process, () => void>()

/** To be called when the process of a worker has ended. */
export const workerEnded = (child: Process): void => ended.get(child)?.()

let started = 0

const cluster = {
  isWorker: false,
  SCHED_NONE: 1,
  schedulingPolicy: 1,
  setupPrimary: (): void => undefined,
  fork: (): SimulatedWorker => {
    started += 1
    return new SimulatedWorker(started)
  },
  /** Numbers begin anew in each run. */
  reset: (): void => {
    started = 0
  },
}

// biome-ignore lint/style/noDefaultExport: node:cluster has one.
export default cluster
