/** The items of the simulated upstream. */
export const items = [1, 2, 3, 4, 5] as const

/** What a client reads: the version of each item shown. */
export type Shown = Readonly<Record<string, number>>

/** Of an item at the upstream. One that is gone has a version too: that of its deletion, or of a change since. */
export type ItemState = { readonly version: number; readonly isGone: boolean }
export type States = ReadonlyMap<number, ItemState>

/** A request of a client, and as the upstream gets it. */
export type SimulatedRequest = {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly content: Buffer | undefined
}

/** Something that can be read. `requests`: spellings of one request. An item of `items` that is not shown is gone. */
export type Resource = {
  readonly name: string
  readonly items: readonly number[]
  readonly requests: readonly SimulatedRequest[]
  /** Undefined: it is an error. */
  readonly shown: (text: string) => Shown | undefined
}

/** `save` leaves what is gone as it is, unless the service makes it anew; `publish` brings it back. */
export const verbs = ['save', 'publish', 'delete'] as const
export type Verb = (typeof verbs)[number]

/** The interface by which a write is sent. */
export const ways = ['rest', 'graphql', 'graphql-get'] as const
export type Way = (typeof ways)[number]

/** What the upstream responds with, of the items that a request shows. */
export type View = {
  readonly items: readonly number[]
  readonly rendered: (states: States) => Rendered
}

export type Rendered = {
  readonly status: number
  readonly headers: readonly string[]
  readonly content: Buffer
}

type Written = { readonly item: number; readonly verb: Verb; readonly way: Way } & ItemState

/** How clients and the upstream speak of items and lists. */
export type Interface = {
  readonly kind: 'open' | 'site' | 'plants'
  readonly item: (item: number) => Resource
  /** Everything else that shows items. */
  readonly lists: readonly Resource[]
  /** What a request shows at the upstream; undefined: there is nothing. */
  readonly viewOf: (request: Pick<SimulatedRequest, 'target' | 'content'>) => View | undefined
  readonly write: (item: number, verb: Verb, way: Way) => SimulatedRequest
  /** Of an error too. */
  readonly writeHeaders: readonly string[]
  /** The response to a write. */
  readonly written: (write: Written) => Pick<Rendered, 'status' | 'content'>
  /** Does `save` make an item that is gone anew? */
  readonly savesAnew: boolean
  /** Do lists show what is known of a write without a complete response? */
  readonly unknownReachesLists: boolean
  /** Where clients send batches, if there are any. */
  readonly batchTarget: string | undefined
  /** Of each batch. */
  readonly batchHeaders: Readonly<Record<string, string>>
}

export const jsonType = ['Content-Type', 'application/json'] as const

export const json = (content: unknown): Buffer => Buffer.from(JSON.stringify(content))

export const get = (target: string, headers: SimulatedRequest['headers'] = {}): SimulatedRequest => ({
  ...{ method: 'GET', target, headers, content: undefined },
})

/** The version of each item that is there. */
export const present = (states: States): readonly (readonly [item: number, version: number])[] =>
  [...states].flatMap(([item, { isGone, version }]) => (isGone ? [] : [[item, version] as const]))

export const withPath = (item: number, path: string): boolean => path.split('/').at(-1) === String(item)
