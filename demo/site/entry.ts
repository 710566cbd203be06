/** One item of any post type, a revision or an autosave; replaced as a whole, never changed. */
export type Entry = {
  readonly id: number
  readonly type: string
  readonly slug: string
  readonly status: string
  /** Milliseconds since 1970; the site's time zone is UTC. */
  readonly date: number
  readonly modified: number
  readonly author: number
  readonly title: string
  readonly content: string
  readonly excerpt: string
  readonly password: string
  readonly parent: number
  readonly menuOrder: number
  readonly featuredMedia: number
  readonly commentStatus: string
  readonly pingStatus: string
  readonly template: string
  readonly format: string
  readonly sticky: boolean
  /** Term identifiers by taxonomy. */
  readonly terms: Readonly<Record<string, readonly number[]>>
  readonly meta: Readonly<Record<string, unknown>>
  /** Fields that one type alone has: a file, a link, styles. */
  readonly own: Readonly<Record<string, unknown>>
}

/** A category, tag, menu or pattern category. */
export type Term = {
  readonly id: number
  readonly taxonomy: string
  readonly name: string
  readonly slug: string
  readonly description: string
  readonly parent: number
}

/** An account; only `admin` and `reader` can sign in. */
export type User = {
  readonly id: number
  readonly slug: string
  readonly name: string
  readonly role: string
}

/** A comment on a post. */
export type Comment = {
  readonly id: number
  readonly post: number
  readonly authorName: string
  readonly text: string
  readonly date: number
}

/** A contact form. */
export type Form = {
  readonly id: number
  readonly slug: string
  readonly title: string
  readonly form: string
}

/** A template or template part: `file` is what the theme brings, the rest what it is now. */
export type Template = {
  readonly type: 'wp_template' | 'wp_template_part'
  readonly slug: string
  readonly title: string
  readonly description: string
  readonly content: string
  readonly area: string
  /** Identifier of the customisation; 0 while the theme's file is used as it is. */
  readonly postId: number
  readonly author: number
  readonly modified: number
  readonly file: Pick<Template, 'title' | 'description' | 'content'> | undefined
}

/** What an entry has unless it is said otherwise. */
export const blankEntry: Omit<Entry, 'id' | 'type' | 'date' | 'modified'> = {
  slug: '',
  status: 'publish',
  author: 1,
  title: '',
  content: '',
  excerpt: '',
  password: '',
  parent: 0,
  menuOrder: 0,
  featuredMedia: 0,
  commentStatus: 'open',
  pingStatus: 'open',
  template: '',
  format: 'standard',
  sticky: false,
  terms: {},
  meta: {},
  own: {},
}
