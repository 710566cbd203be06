/** A view can do without somebody who is slow; what changes all must be known of all. */
export type Patience = 'brief' | 'until-all'

/** Questions that one worker asks of all, itself included, by way of the parent. */
export type Gatherings<Asker> = {
  /** `answered` gets the answers of those who gave one in time; with `until-all`, of all who have not gone. */
  begin(
    members: readonly Asker[],
    patience: Patience,
    answered: (answers: readonly unknown[]) => void,
  ): number
  answer(id: number, from: Asker, content: unknown): void
  /** Nothing more is to be expected of it. */
  gone(member: Asker): void
}

type Gathering<Asker> = {
  readonly left: Set<Asker>
  readonly answers: unknown[]
  readonly end: () => void
}

export const createGatherings = <Asker>(briefMs: number): Gatherings<Asker> => {
  const open = new Map<number, Gathering<Asker>>()
  let last = 0
  const heard = (gathering: Gathering<Asker>, member: Asker): void => {
    if (gathering.left.delete(member) && gathering.left.size === 0) gathering.end()
  }
  return {
    begin: (members, patience, answered) => {
      last += 1
      const id = last
      const answers: unknown[] = []
      const end = (): void => {
        clearTimeout(timer)
        if (open.delete(id)) answered(answers)
      }
      const timer = patience === 'brief' ? setTimeout(end, briefMs) : undefined
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
