import type { Row } from '../../src/service/row.ts'
import type { Resource } from './call.ts'
import { type CollectionSpec, collectionSpecs, taxonomyBases } from './collections.ts'
import {
  feedbackResource,
  feedbackSchemaResource,
  formResource,
  formsResource,
  refillResource,
} from './contact-forms.ts'
import type { DialectNames } from './dialect-names.ts'
import { globalStylesItem, globalStylesRevisions, themeStyles } from './global-styles.ts'
import { indexResource, namespaceResource } from './index-document.ts'
import { collectionResource, itemResource } from './items.ts'
import { mediaAction, mediaCollection } from './media.ts'
import { oembedProxyResource, oembedResource } from './oembed.ts'
import { commentsResource, meResource, userResource, usersResource } from './people.ts'
import {
  searchResource,
  statusesResource,
  taxonomiesResource,
  themesResource,
  typesResource,
} from './site-facts.ts'
import { templateAutosaves, templateRevisions } from './template-versions.ts'
import { type TemplateKind, templateCollection, templateItem } from './templates.ts'
import { termResource, termSpecs } from './terms.ts'
import { autosaveResource, autosavesResource, revisionResource, revisionsResource } from './versions.ts'

type Table = Readonly<Record<string, Resource>>

const itemTable = (spec: CollectionSpec): Table => ({
  [`${spec.base}.collection`]: spec.base === 'media' ? mediaCollection(spec) : collectionResource(spec),
  [`${spec.base}.item`]: itemResource(spec),
  [`${spec.base}.revisions`]: revisionsResource(spec),
  [`${spec.base}.revision`]: revisionResource(spec),
  [`${spec.base}.autosaves`]: autosavesResource(spec),
  [`${spec.base}.autosave`]: autosaveResource(spec),
  [`${spec.base}.post-process`]: mediaAction(spec),
  [`${spec.base}.edit`]: mediaAction(spec),
})

const templateTable = (kind: TemplateKind): Table => ({
  [`${kind.base}.collection`]: templateCollection(kind),
  [`${kind.base}.lookup`]: templateCollection(kind),
  [`${kind.base}.item`]: templateItem(kind),
  [`${kind.base}.revisions`]: templateRevisions(kind),
  [`${kind.base}.revision`]: templateRevisions(kind),
  [`${kind.base}.autosaves`]: templateAutosaves(kind),
  [`${kind.base}.autosave`]: templateAutosaves(kind),
})

const singles: Table = {
  index: indexResource,
  'oembed.embed': oembedResource,
  'oembed.proxy': oembedProxyResource,
  'contact-forms.collection': formsResource,
  'contact-forms.item': formResource,
  'contact-forms.feedback': feedbackResource,
  'contact-forms.feedback-schema': feedbackSchemaResource,
  'contact-forms.refill': refillResource,
  'global-styles.item': globalStylesItem,
  'global-styles.revisions': globalStylesRevisions,
  'global-styles.revision': globalStylesRevisions,
  'global-styles.theme': themeStyles,
  'global-styles.variations': themeStyles,
  'taxonomies.collection': taxonomiesResource,
  'taxonomies.item': taxonomiesResource,
  'statuses.collection': statusesResource,
  'statuses.item': statusesResource,
  'users.collection': usersResource,
  'users.item': userResource,
  'users.me': meResource,
  'comments.collection': commentsResource,
  'comments.item': commentsResource,
  'search.collection': searchResource,
  'themes.collection': themesResource,
}

/** Finds what answers a row; every row but the batch has one. */
export const resourcesOf = (names: DialectNames): ((row: Row) => Resource | undefined) => {
  const specs = collectionSpecs(names)
  const types = typesResource(specs)
  const table: Table = Object.assign(
    { ...singles, 'types.collection': types, 'types.item': types },
    ...Object.values(specs).map(itemTable),
    templateTable({ base: 'templates', type: 'wp_template' }),
    templateTable({ base: 'template-parts', type: 'wp_template_part' }),
    ...termSpecs(taxonomyBases(names)).map((spec) => ({
      [`${spec.base}.collection`]: termResource(spec),
      [`${spec.base}.item`]: termResource(spec),
    })),
  )
  return (row) => (row.kind === 'index' && row.id !== 'index' ? namespaceResource : table[row.id])
}
