// Titles to addresses: "Über uns & mehr" becomes "ueber-uns-und-mehr".

const REPLACEMENTS = {
  de: {ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss', '&': ' und '},
  es: {'&': ' y '},
  fr: {œ: 'oe', æ: 'ae', '&': ' et '},
  sv: {å: 'a', ä: 'a', ö: 'o', '&': ' och '},
  en: {'&': ' and '},
};

/**
 * @param {string} title any text
 * @param {{language?: string, maximum?: number}} [options] the language's own rules; the longest slug allowed
 * @returns {string} lower-case letters, digits and single hyphens; cut at a hyphen
 */
export function slugify(title, {language = 'en', maximum = 60} = {}) {
  const rules = REPLACEMENTS[language] ?? REPLACEMENTS.en;
  const spelled = [...title.normalize('NFC').toLowerCase()].map((c) => rules[c] ?? c).join('');
  const plain = spelled.normalize('NFKD').replace(/\p{M}+/gu, '');
  const slug = plain.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '');
  if (slug.length <= maximum) {
    return slug;
  }
  const cut = slug.lastIndexOf('-', maximum);
  return slug.slice(0, cut > 0 ? cut : maximum);
}

/** A slug that is not taken yet: "news", "news-2", "news-3". */
export function uniqueSlug(title, taken, options) {
  const slug = slugify(title, options);
  if (!taken.has(slug)) {
    return slug;
  }
  let n = 2;
  while (taken.has(`${slug}-${n}`)) {
    n += 1;
  }
  return `${slug}-${n}`;
}
