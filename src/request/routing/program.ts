import type { CharacterSet } from './character-set.ts'
import type { PatternNode } from './pattern.ts'

/** One instruction of a matching program. Where two ways lead on, the first is preferred. */
type Instruction =
  | { readonly kind: 'one'; readonly set: CharacterSet }
  | { readonly kind: 'fork'; preferred: number; other: number }
  | { readonly kind: 'jump'; to: number }
  /** Remembers the position: even slots begin a group, odd slots end it. */
  | { readonly kind: 'mark'; readonly slot: number }
  | { readonly kind: 'match' }

export type Program = {
  readonly instructions: readonly Instruction[]
  /** Names of the groups, in the order of their slots. */
  readonly groups: readonly string[]
}

/** Each character of a path costs at most one visit per instruction; this bounds that product. */
const maxInstructions = 200

class TooComplex extends Error {}

type Draft = { readonly instructions: Instruction[]; readonly groups: string[] }

const emit = <Kind extends Instruction>(draft: Draft, instruction: Kind): Kind => {
  if (draft.instructions.length >= maxInstructions) throw new TooComplex()
  draft.instructions.push(instruction)
  return instruction
}

const here = (draft: Draft): number => draft.instructions.length

/** Emits a fork into what follows at once, and gives back how to set the way around it. */
const forkOver = (draft: Draft, lazy: boolean): ((around: number) => void) => {
  const fork = emit(draft, { kind: 'fork', preferred: 0, other: 0 })
  const body = here(draft)
  return (around) => {
    fork.preferred = lazy ? around : body
    fork.other = lazy ? body : around
  }
}

const compileChoice = (draft: Draft, options: readonly PatternNode[]): void => {
  const ends: { to: number }[] = []
  options.forEach((option, index) => {
    const isLast = index === options.length - 1
    const goAround = isLast ? undefined : forkOver(draft, false)
    compile(draft, option)
    if (!isLast) ends.push(emit(draft, { kind: 'jump', to: 0 }))
    goAround?.(here(draft))
  })
  for (const end of ends) end.to = here(draft)
}

const compileRepeat = (draft: Draft, repeat: Extract<PatternNode, { kind: 'repeat' }>): void => {
  for (let i = 0; i < repeat.min; i++) compile(draft, repeat.node)
  if (repeat.max === Infinity) {
    const start = here(draft)
    const goAround = forkOver(draft, repeat.lazy)
    compile(draft, repeat.node)
    emit(draft, { kind: 'jump', to: start })
    goAround(here(draft))
    return
  }
  const around: ((at: number) => void)[] = []
  for (let i = repeat.min; i < repeat.max; i++) {
    around.push(forkOver(draft, repeat.lazy))
    compile(draft, repeat.node)
  }
  for (const goAround of around) goAround(here(draft))
}

const compile = (draft: Draft, node: PatternNode): void => {
  switch (node.kind) {
    case 'one':
      emit(draft, { kind: 'one', set: node.set })
      return
    case 'sequence':
      for (const part of node.nodes) compile(draft, part)
      return
    case 'choice':
      compileChoice(draft, node.options)
      return
    case 'repeat':
      compileRepeat(draft, node)
      return
    case 'group': {
      const slot = draft.groups.push(node.name) * 2 - 2
      emit(draft, { kind: 'mark', slot })
      compile(draft, node.node)
      emit(draft, { kind: 'mark', slot: slot + 1 })
    }
  }
}

/** The program of a pattern, or undefined when it would be too long. */
export const compileProgram = (node: PatternNode): Program | undefined => {
  const draft: Draft = { instructions: [], groups: [] }
  try {
    compile(draft, node)
    emit(draft, { kind: 'match' })
    return draft
  } catch (error) {
    if (error instanceof TooComplex) return undefined
    throw error
  }
}
