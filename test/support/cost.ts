/** Text that takes the reference work some milliseconds. */
const sample = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ id: at, title: `plant ${at}` })))
/** What `reference` takes on the machine on which the bounds of the tests were found, in milliseconds. */
const usualMs = 12

const reference = (): void => {
  JSON.stringify(JSON.parse(sample))
}

/** In milliseconds: what passed, or the processor time of the process where that is less, since other programs run meanwhile. */
const took = (run: () => unknown): number => {
  const [began, before] = [performance.now(), process.cpuUsage()]
  run()
  const { user, system } = process.cpuUsage(before)
  return Math.min(performance.now() - began, (user + system) / 1000 || Number.POSITIVE_INFINITY)
}

/** How many times as much processor time as usual the same work takes on this machine at this time; at least 1. */
export const slowness = (): number => Math.max(1, Math.min(took(reference), took(reference)) / usualMs)

/**
 * Milliseconds that `run` costs: what it costs, not what else the machine does. Of several tries the best counts, the first that is
 * below `enoughMs` ends them, and where the same work takes longer than it usually does, so may this.
 */
export const cost = (run: () => unknown, enoughMs: number, tries = 10): number => {
  let best = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < tries && best >= enoughMs; turn += 1) {
    const times = slowness()
    best = Math.min(best, took(run) / times)
  }
  return best
}

/**
 * How many times as long `run` takes as `yardstick`, on this machine at this time: the best of several tries of each, by turns; the
 * first ratio below `enough` ends them.
 */
export const costBeside = (
  run: () => unknown,
  yardstick: () => unknown,
  enough: number,
  tries = 10,
): number => {
  let [best, usual] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let turn = 0; turn < tries && (turn === 0 || best / usual >= enough); turn += 1) {
    usual = Math.min(usual, took(yardstick))
    best = Math.min(best, took(run))
  }
  return best / usual
}

/**
 * Milliseconds of processor time that this process takes while `run` goes on, compared in the same way. All that the process does
 * meanwhile is counted, a gateway and an origin inside the test among it.
 */
export const costOfRequest = async (
  run: () => Promise<unknown>,
  enoughMs: number,
  tries = 5,
): Promise<number> => {
  let best = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < tries && best >= enoughMs; turn += 1) {
    const times = slowness()
    const before = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1000 / times)
  }
  return best
}
