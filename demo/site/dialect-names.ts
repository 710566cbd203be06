import { keyNames, type NamePair, namespaceNames } from '../../src/wordpress/names/name-table.ts'

/** The names in which the two dialects differ; everything else is WordPress's in both. */
export type DialectNames = {
  readonly content: string
  readonly forms: string
  /** All namespaces in the order WordPress announces them. */
  readonly namespaces: readonly string[]
  readonly templateId: string
  readonly patternCategory: string
  readonly patternSyncStatus: string
}

/** `wordpress`: as a real upstream; `neutral`: as the public contract. */
export type Dialect = 'wordpress' | 'neutral'

/** Spells the names of the contract in one dialect. */
export const namesOf = (dialect: Dialect): DialectNames => {
  const spell = (pairs: readonly NamePair[], neutral: string): string =>
    dialect === 'neutral' ? neutral : (pairs.find((pair) => pair.neutral === neutral)?.wordpress ?? neutral)
  const namespace = (neutral: string): string => spell(namespaceNames, neutral)
  const key = (neutral: string): string => spell(keyNames, neutral)
  return {
    content: namespace('site/v2'),
    forms: namespace('contact-form/v1'),
    namespaces: [
      'oembed/1.0',
      namespace('contact-form/v1'),
      namespace('site/v2'),
      namespace('site-health/v1'),
      namespace('block-editor/v1'),
      namespace('abilities/v1'),
    ],
    templateId: key('site_id'),
    patternCategory: key('site_pattern_category'),
    patternSyncStatus: key('site_pattern_sync_status'),
  }
}
