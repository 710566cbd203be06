/** A view may lack a slow worker's answer; a change needs the answers of all. */
export type Patience = 'brief' | 'until-all'

/** Questions of one worker to all workers, itself included, sent through the parent. */
export type Questions<Member> = {
  /** `answered` gets the answers that arrived in time; with `until-all`, those of all workers that did not exit. */
  begin(
    members: readonly Member[],
    patience: Patience,
    answered: (answers: readonly unknown[]) => void,
  ): number
  answer(id: number, from: Member, content: unknown): void
  /** No more answers will come from it. */
  gone(member: Member): void
}

type Gathering<Member> = {
  readonly left: Set<Member>
  readonly answers: unknown[]
  readonly end: () => void
}

export const createQuestions = <Member>(briefMs: number): Questions<Member> => {
  const open = new Map<number, Gathering<Member>>()
  let last = 0
  const heard = (gathering: Gathering<Member>, member: Member): void => {
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
