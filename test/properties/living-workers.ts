import type { GatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { pause } from '../support/origin.ts'

/** Process ids of the workers of a gateway that logs at level info, oldest first. */
export const livingWorkers = ({ program }: Pick<GatewayProcess, 'program'>): readonly number[] => {
  const ended = new Set(logLinesOf(program, 'worker-ended').map(({ pid }) => pid))
  return logLinesOf(program, 'worker-ready')
    .map(({ pid }) => pid as number)
    .filter((pid) => !ended.has(pid))
}

/** Waits until as many are there: one that was killed is replaced. */
export const allWorkers = async (
  gateway: Pick<GatewayProcess, 'program'>,
  wanted: number,
): Promise<readonly number[]> => {
  for (;;) {
    const pids = livingWorkers(gateway)
    if (pids.length === wanted) return pids
    await pause(50)
  }
}
