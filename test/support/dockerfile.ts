/** One instruction: `COPY --from=build a b` is name COPY, flags { from: 'build' }, words ['a', 'b']. */
export type Instruction = {
  readonly name: string
  readonly flags: Readonly<Record<string, string>>
  /** The rest of the line as it stands. */
  readonly text: string
  readonly words: readonly string[]
}

export type Stage = {
  readonly base: string
  readonly name: string
  readonly instructions: readonly Instruction[]
}

/** Reads the part of the Dockerfile language that this project's Dockerfile uses. */
export function parseDockerfile(source: string): Stage[] {
  const lines = source
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  const stages: { base: string; name: string; instructions: Instruction[] }[] = []
  for (const line of lines) {
    const instruction = parseInstruction(line)
    if (instruction.name === 'FROM') {
      const [base = '', , name = String(stages.length)] = instruction.words
      stages.push({ base, name, instructions: [] })
    } else stages.at(-1)?.instructions.push(instruction)
  }
  return stages
}

function parseInstruction(line: string): Instruction {
  const [name = '', ...words] = line.trim().split(/\s+/)
  const flags: Record<string, string> = {}
  while (words[0]?.startsWith('--')) {
    const [key = '', value = ''] = words.shift()?.slice(2).split('=') ?? []
    flags[key] = value
  }
  return { name: name.toUpperCase(), flags, words, text: words.join(' ') }
}

/** The words of an exec form (`["node", "main.js"]`), undefined for a shell form. */
export function execForm(instruction: Instruction | undefined): string[] | undefined {
  const text = instruction?.text.replace(/^CMD /, '') ?? ''
  return text.startsWith('[') ? (JSON.parse(text) as string[]) : undefined
}
