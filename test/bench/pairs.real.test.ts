import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { chooseOther, chooseScenarios } from '../../bench/pairs.ts'
import { peers } from '../../bench/peers/index.ts'
import { plain } from '../../bench/peers/trellis.ts'
import { rows } from '../../bench/table.ts'
import { inTurns, inWords } from '../../bench/turns.ts'

describe('two servers in turns', () => {
  test('each goes first every other time, and each pair has ours in front', async () => {
    const order: string[] = []
    const pairs = await inTurns('ours', 'theirs', 3, async (which) => `${which} ${order.push(which)}`)
    expect(order).toEqual(['ours', 'theirs', 'theirs', 'ours', 'ours', 'theirs'])
    expect(pairs).toEqual([
      ['ours 1', 'theirs 2'],
      ['ours 4', 'theirs 3'],
      ['ours 5', 'theirs 6'],
    ])
  })

  test('one turn ends before the next one begins', async () => {
    let running = 0
    let max = 0
    await inTurns(1, 2, 4, async () => {
      running += 1
      max = Math.max(max, running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
    })
    expect(max).toBe(1)
  })

  test('the ratio is the median of the pairs, not that of two medians, and lies between its quartiles', () => {
    const cost = (perProcessorSecond: number) => ({ perProcessorSecond })
    // The machine is ten times as slow in one pair, for both of them.
    const rounds = [
      [cost(10_000), cost(20_000)],
      [cost(1_500), cost(2_000)],
      [cost(20_000), cost(20_000)],
      [cost(25_000), cost(20_000)],
      [cost(40_000), cost(20_000)],
    ] as const
    expect(inWords(rounds, 'bare')).toBe(
      '50.0 µs here, 50.0 µs bare: 1.00 (quartiles 0.75 and 1.25 of 5 pairs)',
    )
    expect(inWords(rounds.slice(0, 2), 'bare')).toBe(
      '173.9 µs here, 90.9 µs bare: 0.63 (quartiles 0.50 and 0.75 of 2 pairs)',
    )
  })
})

describe('what is measured, and in which unit', () => {
  test('a peer by its name', () => {
    expect(chooseOther('http-proxy').name).toBe('http-proxy')
  })

  test('another build by its folder', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-build-'))
    await writeFile(join(folder, 'main.js'), '')
    expect(chooseOther(folder).title).toBe('there')
  })

  test('neither is refused with what there is', () => {
    expect(() => chooseOther('no-such-peer')).toThrow(
      /^no-such-peer is neither a folder with a main\.js nor one of trellis, .*http-proxy/,
    )
  })

  const proxy = chooseOther('http-proxy')
  test('scenarios by a list, in its order', () => {
    expect(chooseScenarios('miss,pass', proxy, true).map(({ name }) => name)).toEqual(['miss', 'pass'])
  })

  test.each([
    ['one that there is not', 'pass,passs', true, 'no scenario passs'],
    ['one in which the peer takes no part', 'hit', true, 'takes no part in hit'],
    ['one that needs a generator which is not there', 'miss', false, 'miss needs wrk'],
  ])('%s is refused', (_, named, runsScripts, text) => {
    expect(() => chooseScenarios(named, proxy, runsScripts)).toThrow(text)
  })
})

test.each(rows)(
  'of the table: the server takes part in $scenario against $against',
  ({ scenario, against }) => {
    // Where the server is not installed there is nothing to choose.
    const other = [...peers, plain].find(({ name }) => name === against)
    expect(other?.targets[scenario]).toMatch(/^\//)
  },
)
