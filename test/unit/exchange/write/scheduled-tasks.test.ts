import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ScheduledTasks } from '../../../../src/exchange/write/scheduled-tasks.ts'
import { tasksBehindPages } from '../../../../src/wordpress/tags/scheduled-tasks.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Seconds at which something is dropped when tasks are asked for at these seconds, and when the runs are forgotten. */
const droppedAt = async (asked: readonly number[], until: number) => {
  const drops: number[] = []
  const quiet: number[] = []
  let second = 0
  const tasks = new ScheduledTasks(tasksBehindPages, () => quiet.push(second))
  for (; second <= until; second += 1) {
    if (second > 0) await vi.advanceTimersByTimeAsync(1_000)
    if (asked.includes(second))
      void tasks.started(() => {
        drops.push(second)
        return undefined
      })
  }
  return { drops, quiet }
}

describe('scheduled tasks', () => {
  test('one run drops at once, when it is likely to be done, and when its lock ends', async () => {
    expect(await droppedAt([0], 180)).toEqual({ drops: [0, 5, 60], quiet: [60] })
  })

  test('a second run within the minute drops at its end, and begins the next minute', async () => {
    expect(await droppedAt([0, 30], 240)).toEqual({ drops: [0, 5, 60, 65, 120], quiet: [120] })
  })

  test('runs asked for each four seconds drop once a minute', async () => {
    const asked = Array.from({ length: 150 }, (_, at) => 4 * at)
    const { drops } = await droppedAt(asked, 599)
    expect(drops).toEqual([0, 5, ...Array.from({ length: 9 }, (_, at) => 60 * (at + 1))])
  })

  test.each([1, 3, 7, 20, 60])(
    'whatever a run writes within a minute is dropped within a minute, with runs each %i seconds',
    async (each) => {
      const asked = Array.from({ length: Math.floor(300 / each) }, (_, at) => each * at)
      const { drops } = await droppedAt(asked, 600)
      const written = asked.flatMap((begun) => Array.from({ length: 60 }, (_, after) => begun + after))
      expect(written.filter((at) => !drops.some((drop) => drop > at && drop <= at + 60))).toEqual([])
    },
  )

  test('the last one that asked says what is dropped later', async () => {
    const drops: string[] = []
    const tasks = new ScheduledTasks(tasksBehindPages, () => undefined)
    for (const name of ['before', 'after'])
      void tasks.started(() => {
        drops.push(name)
        return undefined
      })
    await vi.advanceTimersByTimeAsync(5_000)
    expect(drops).toEqual(['before', 'after'])
  })

  test('a drop that fails ends neither the process nor the later ones', async () => {
    let drops = 0
    const tasks = new ScheduledTasks(tasksBehindPages, () => undefined)
    const fail = (): Promise<unknown> => {
      drops += 1
      return Promise.reject(new Error('unreachable'))
    }
    await expect(tasks.started(fail)).rejects.toThrow('unreachable')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(drops).toBe(3)
  })
})
