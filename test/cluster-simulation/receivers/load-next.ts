type Value = {
  readonly kind: 'FETCH'
  readonly data: { readonly headers: Readonly<Record<string, string>>; readonly body: string }
  readonly revalidate: number
}

type Handler = {
  get(key: string, context: { readonly kind: 'FETCH' }): Promise<{ readonly value: Value } | null>
  set(key: string, value: Value, context: { readonly tags: readonly string[] }): Promise<void>
}

type PurgeRequest = {
  text(): Promise<string>
  readonly headers: { get(name: string): string | null }
  readonly signal: AbortSignal
}

/** A process of Next.js with the handlers of packages/next. */
export type NextReceiver = {
  readonly Handler: new () => Handler
  readonly route: (secret: string) => (request: PurgeRequest) => Promise<Response>
}

type ProcessFacts = { readonly id: string; readonly now: () => number; readonly wall: () => number }

/** Starts one. The bundle of the simulation has another text in the place of this module (next-modules.ts). */
export const loadNext = (_: ProcessFacts): NextReceiver => {
  throw new Error('packages/next is in the bundle of the simulation alone')
}
