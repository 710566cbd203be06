import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { pause } from './origin.ts'

/** Processor time of the main thread, which does not depend on what else the machine does. */
const processorMs = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6

/** Asks for a stored `ok` at a steady pace; the processor time in milliseconds that the process spent while each was answered. */
export const processorMsOfHits = async (
  pid: number,
  url: string,
  { hits, everyMs }: { readonly hits: number; readonly everyMs: number },
): Promise<readonly number[]> => {
  const spentMs: number[] = []
  const hit = async (): Promise<void> => {
    const before = processorMs(pid)
    const response = await fetch(url)
    expect([response.status, await response.text()]).toEqual([200, 'ok'])
    spentMs.push(processorMs(pid) - before)
  }
  const asked: Promise<void>[] = []
  for (let i = 0; i < hits; i += 1) {
    asked.push(hit())
    await pause(everyMs)
  }
  await Promise.all(asked)
  return spentMs
}
