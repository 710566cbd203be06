/** What is updated, and what an update of it sets. */
type Kind = {
  /** Of the REST route. */
  readonly collection: string
  /** New in each round, unless it is meant to be what is there. */
  readonly body: (round: number, id: number) => Readonly<Record<string, string>>
  /** For a site that has fewer than a batch takes. */
  readonly create?: (number: number) => Readonly<Record<string, string>>
}

const numbered = (round: number, id: number): string => `Round ${round}, ${id}`

/** Updates that clients send many of. */
export const updates = {
  /** Nothing that WordPress would keep a revision of. */
  switch: { collection: 'posts', body: (round) => ({ ping_status: round % 2 === 0 ? 'open' : 'closed' }) },
  /** A revision is kept. */
  title: { collection: 'posts', body: (round, id) => ({ title: numbered(round, id) }) },
  /** A sync that sends what is there already. */
  'same-title': { collection: 'posts', body: (_round, id) => ({ title: `Plant ${id}` }) },
  page: {
    collection: 'pages',
    body: (round, id) => ({ title: numbered(round, id) }),
    create: (number) => ({ title: `Page ${number}`, status: 'publish' }),
  },
  tag: {
    collection: 'tags',
    body: (round, id) => ({ description: numbered(round, id) }),
    create: (number) => ({ name: `Tag ${number}` }),
  },
  category: {
    collection: 'categories',
    body: (round, id) => ({ description: numbered(round, id) }),
    create: (number) => ({ name: `Category ${number}` }),
  },
  user: {
    collection: 'users',
    body: (round, id) => ({ description: numbered(round, id) }),
    create: (number) => ({
      username: `gardener-${number}`,
      email: `gardener-${number}@example.org`,
      password: `spade-and-fork-${number}`,
    }),
  },
  'menu-item': {
    collection: 'menu-items',
    body: (round, id) => ({ title: numbered(round, id) }),
    create: (number) => ({
      title: `Link ${number}`,
      url: `https://example.org/${number}`,
      status: 'publish',
    }),
  },
} as const satisfies Readonly<Record<string, Kind>>

export type Update = keyof typeof updates

const isUpdate = (name: string): name is Update => Object.hasOwn(updates, name)

/** Those that are asked for by name, one comma between two. */
export function chosenUpdates(choice: string | undefined, usual: readonly Update[]): readonly Update[] {
  if (choice === undefined) return usual
  if (choice === 'all') return Object.keys(updates).filter(isUpdate)
  const names = choice.split(',')
  const unknown = names.find((name) => !isUpdate(name))
  if (unknown !== undefined) throw new Error(`no such update: ${unknown}`)
  return names.filter(isUpdate)
}

export const kindOf = (update: Update): Kind => updates[update]
