/** The user that sends the batch. */
export type Sender = 'admin' | 'editor' | 'author' | 'subscriber' | 'wrong-password' | 'nobody'

/** One batch, in WordPress's names. Cases run in their order, each on what the ones before it have left. */
export type BatchCase = {
  readonly title: string
  /** `admin` when it is not said. */
  readonly as?: Sender
  /** What is sent as JSON; or `raw`, as it is, with its type. */
  readonly envelope?: unknown
  readonly raw?: { readonly type: string; readonly content: string }
  /** Behind the batch route's path, with `?`. */
  readonly query?: string
  /** POST when it is not said. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A batch of these requests. */
export const batch = (title: string, requests: unknown, more: Partial<BatchCase> = {}): BatchCase => ({
  title,
  envelope: { requests },
  ...more,
})

/** An update that shows only what it changes. */
export const update = (path: string, body: unknown, more: Record<string, unknown> = {}) => ({
  method: 'PUT',
  path: `/wp/v2/${path}`,
  body,
  ...more,
})

/** A create, trimmed. */
export const create = (path: string, body: unknown) => ({ method: 'POST', path: `/wp/v2/${path}`, body })

/** A delete. */
export const remove = (path: string) => ({ method: 'DELETE', path: `/wp/v2/${path}` })
