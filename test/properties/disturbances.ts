import { pause } from '../support/origin.ts'

export type Disturbances<Name extends string> = {
  /** How often each was done. */
  readonly counts: Readonly<Record<Name, number>>
  /** What was done when, the latest last. */
  readonly history: readonly string[]
  /** Has each been done? */
  isComplete(): boolean
  /** Does one after the other, with a rest between, until the run is over. */
  disturb(goesOn: () => boolean): Promise<void>
}

/** Faults that a run meets in turn; each ends what it began. */
export const inTurn = <Name extends string>(
  faults: Readonly<Record<Name, (turn: number) => Promise<unknown>>>,
  rest: { readonly firstMs: number; readonly betweenMs: number },
): Disturbances<Name> => {
  const names = Object.keys(faults) as Name[]
  const counts = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>
  const history: string[] = []
  const invalidation = (text: string): void => {
    history.push(`${new Date().toISOString()} ${text}`)
  }
  return {
    counts,
    history,
    isComplete: () => names.every((name) => counts[name] > 0),
    disturb: async (goesOn) => {
      await pause(rest.firstMs)
      for (let turn = 0; goesOn(); turn += 1) {
        const name = names[turn % names.length] as Name
        invalidation(`${name} begins`)
        await faults[name](Math.floor(turn / names.length))
        invalidation(`${name} is over`)
        counts[name] += 1
        await pause(rest.betweenMs)
      }
    },
  }
}
