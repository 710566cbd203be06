/** Why the admin side turns a request away. */
export type AccessRefusal =
  | 'credential-missing'
  | 'credential-wrong'
  | 'cross-site'
  | 'host-by-name'
  | 'not-json'
  | 'not-loopback'

/** What the admin side reports, for the log: every write, and whoever was turned away. Addresses are those of peers. */
export type AdminEvent =
  | {
      readonly kind: 'admin-purge'
      readonly address: string
      readonly selector: 'url' | 'tag' | 'prefix' | 'all'
      readonly mode: 'soft' | 'hard'
      readonly dryRun: boolean
      /** Stored responses concerned. */
      readonly entries: number
    }
  | { readonly kind: 'admin-drain'; readonly address: string }
  | { readonly kind: 'admin-reload'; readonly address: string }
  | { readonly kind: 'admin-refused'; readonly address: string; readonly reason: AccessRefusal }
