/** Questions that one worker asks of all, itself included, by way of the parent. */
export type Gatherings<Asker> = {
  /** `answered` gets the answers of those who gave one in time. */
  begin(members: readonly Asker[], answered: (answers: readonly unknown[]) => void): number
  answer(id: number, from: Asker, content: unknown): void
  /** Nothing more is to be expected of it. */
  gone(member: Asker): void
}

type Gathering<Asker> = {
  readonly left: Set<Asker>
  readonly answers: unknown[]
  readonly end: () => void
}

export const createGatherings = <Asker>(patienceMs: number): Gatherings<Asker> => {
  const open = new Map<number, Gathering<Asker>>()
  let last = 0
  const heard = (gathering: Gathering<Asker>, member: Asker): void => {
    if (gathering.left.delete(member) && gathering.left.size === 0) gathering.end()
  }
  return {
    begin: (members, answered) => {
      last += 1
      const id = last
      const answers: unknown[] = []
      const end = (): void => {
        clearTimeout(timer)
        if (open.delete(id)) answered(answers)
      }
      const timer = setTimeout(end, patienceMs)
      open.set(id, { left: new Set(members), answers, end })
      if (members.length === 0) end()
      return id
    },
    answer: (id, from, content) => {
      const gathering = open.get(id)
      if (gathering?.left.has(from) !== true) return
      gathering.answers.push(content)
      heard(gathering, from)
    },
    gone: (member) => {
      for (const gathering of open.values()) heard(gathering, member)
    },
  }
}
