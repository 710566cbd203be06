import type { Program } from './program.ts'

type Marks = readonly number[]
type Thread = { readonly at: number; readonly marks: Marks }

/**
 * Threads of one position, in order of preference, at most one per instruction:
 * the first to reach an instruction is the one that a backtracking matcher would have tried first.
 */
type Threads = { readonly list: Thread[]; readonly seen: Uint8Array }

const withMark = (marks: Marks, slot: number, position: number): Marks => {
  const marked = marks.slice()
  marked[slot] = position
  return marked
}

/** Follows what consumes nothing, preferred ways first, without recursion: a program may fork at every instruction. */
const addThreads = (program: Program, threads: Threads, start: Thread, position: number): void => {
  const pending: Thread[] = [start]
  for (let thread = pending.pop(); thread !== undefined; thread = pending.pop()) {
    const { at, marks } = thread
    const instruction = program.instructions[at]
    if (instruction === undefined || threads.seen[at] === 1) continue
    threads.seen[at] = 1
    switch (instruction.kind) {
      case 'fork':
        pending.push({ at: instruction.other, marks }, { at: instruction.preferred, marks })
        break
      case 'jump':
        pending.push({ at: instruction.to, marks })
        break
      case 'mark':
        pending.push({ at: at + 1, marks: withMark(marks, instruction.slot, position) })
        break
      default:
        threads.list.push(thread)
    }
  }
}

const emptyThreads = (program: Program): Threads => ({
  list: [],
  seen: new Uint8Array(program.instructions.length),
})

/** Threads that accept the character at `position`, one step on. */
const step = (program: Program, threads: Threads, text: string, position: number): Threads => {
  const stepped = emptyThreads(program)
  const code = text.charCodeAt(position)
  for (const thread of threads.list) {
    const instruction = program.instructions[thread.at]
    if (instruction?.kind === 'one' && instruction.set[code] === 1) {
      addThreads(program, stepped, { at: thread.at + 1, marks: thread.marks }, position + 1)
    }
  }
  return stepped
}

const groupsOf = (program: Program, text: string, marks: Marks): ReadonlyMap<string, string> => {
  const groups = new Map<string, string>()
  program.groups.forEach((name, index) => {
    const start = marks[index * 2]
    const end = marks[index * 2 + 1]
    if (start !== undefined && end !== undefined) groups.set(name, text.slice(start, end))
  })
  return groups
}

/**
 * Matches the whole text. All ways are followed at once, so the cost is the length of the text times
 * the length of the program, whatever the pattern; groups are those that a backtracking matcher would find.
 */
export const runProgram = (program: Program, text: string): ReadonlyMap<string, string> | undefined => {
  let threads = emptyThreads(program)
  addThreads(program, threads, { at: 0, marks: [] }, 0)
  for (let position = 0; position < text.length && threads.list.length > 0; position++) {
    threads = step(program, threads, text, position)
  }
  const finished = threads.list.find((thread) => program.instructions[thread.at]?.kind === 'match')
  return finished && groupsOf(program, text, finished.marks)
}
