export type AdminRefusal =
  | 'credential-missing'
  | 'credential-wrong'
  | 'cross-site'
  | 'host-by-name'
  | 'not-json'
  | 'not-loopback'

/** Events of the admin side, for the log: every write and every refusal. Addresses are those of peers. */
export type AdminEvent = { readonly address: string } & (
  | {
      readonly kind: 'admin-purge'
      /** `several`: selectors of more than one kind. */
      readonly selector: 'url' | 'tag' | 'prefix' | 'all' | 'several'
      readonly selectors: number
      readonly mode: 'soft' | 'hard'
      readonly dryRun: boolean
      readonly entries: number
      readonly warming: number
    }
  | { readonly kind: 'admin-warm'; readonly warming: number }
  | { readonly kind: 'admin-log-level'; readonly to: string; readonly forMs: number | undefined }
  | { readonly kind: 'admin-drain' | 'admin-reload' }
  | { readonly kind: 'admin-refused'; readonly reason: AdminRefusal }
)
