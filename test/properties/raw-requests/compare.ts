import { readResponses } from '../../support/read-messages.ts'
import { explanation } from './explained.ts'
import { firstMissing } from './sightings.ts'
import type { Looked, ThreeReaders } from './three-readers.ts'
import { variant } from './variants.ts'

/** What came of many variants. */
export type Figures = {
  readonly tried: number
  /** Requests that the gateway sent on, and variants of which it sent on any. */
  readonly sentOn: number
  readonly variantsSentOn: number
  /** Variants of which it refused something. */
  readonly refused: number
  /** Variants looked at a second time, alone. */
  readonly lookedAtAgain: number
  /** Disagreements by their reason. */
  readonly explained: Readonly<Record<string, number>>
  /** Disagreements without one. */
  readonly unexplained: readonly string[]
}

/** This number of variants starts before the late ones are collected. */
const roundLength = 4_000
/** Begun and not over: those that wait in silence among them. */
const underWay = 512

/** What is wrong with it; undefined when nothing is. */
const disagreement = (looked: Looked): string | undefined => {
  const { rest, fault } = readResponses(looked.said)
  if (fault !== undefined || rest.length > 0) {
    return `what came back is no answer: ${fault}: ${rest.toString('latin1').slice(0, 80)}`
  }
  for (const who of ['plain', 'nginx'] as const) {
    const missing = firstMissing(looked.gateway, looked[who])
    if (missing !== undefined) return `${who} did not see ${missing.slice(0, 120)}`
  }
  return undefined
}

type Verdict =
  | { readonly kind: 'agreed' }
  | { readonly kind: 'explained'; readonly reason: string }
  | { readonly kind: 'unexplained'; readonly wrong: string }

const verdictOn = (seed: number, looked: Looked): Verdict => {
  const wrong = disagreement(looked)
  if (wrong === undefined) return { kind: 'agreed' }
  const reason = explanation(variant(seed), looked)
  return reason === undefined ? { kind: 'unexplained', wrong } : { kind: 'explained', reason }
}

/** Has all three read `count` variants from `firstSeed` on; ends early when too much is unexplained. */
export const compare = async (readers: ThreeReaders, firstSeed: number, count: number): Promise<Figures> => {
  const sums = { tried: 0, sentOn: 0, variantsSentOn: 0, refused: 0, lookedAtAgain: 0 }
  const explained: Record<string, number> = {}
  const unexplained: string[] = []

  const settle = (seed: number, verdict: Verdict): void => {
    if (verdict.kind === 'explained') explained[verdict.reason] = (explained[verdict.reason] ?? 0) + 1
    if (verdict.kind !== 'unexplained') return
    unexplained.push(`${seed}: ${verdict.wrong} in ${JSON.stringify(variant(seed)).slice(0, 700)}`)
  }
  const checkAgain = async (seed: number): Promise<void> => {
    sums.lookedAtAgain += 1
    settle(seed, verdictOn(seed, await readers.lookAlone(seed)))
  }
  const check = async (seed: number): Promise<void> => {
    const looked = await readers.look(seed)
    sums.tried += 1
    sums.sentOn += looked.gateway.length
    sums.variantsSentOn += looked.gateway.length > 0 ? 1 : 0
    sums.refused += /^HTTP\/1\.1 [45]/m.test(looked.said.toString('latin1')) ? 1 : 0
    const verdict = verdictOn(seed, looked)
    if (verdict.kind === 'unexplained') await checkAgain(seed)
    else settle(seed, verdict)
  }
  const checkLate = async (): Promise<void> => {
    const { seeds, strange } = readers.takeLate()
    unexplained.push(...strange.map((one) => `sent on, but part of no variant: ${one}`))
    await Promise.all(seeds.map(checkAgain))
  }

  let next = firstSeed
  const end = firstSeed + count
  while (next < end && unexplained.length < 20) {
    const roundEnd = Math.min(end, next + roundLength)
    const lane = async (): Promise<void> => {
      while (next < roundEnd) {
        next += 1
        await check(next - 1)
      }
    }
    await Promise.all(Array.from({ length: underWay }, lane))
    await checkLate()
  }
  return { ...sums, explained, unexplained }
}
