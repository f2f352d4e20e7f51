// The samples that match the filters, loaded page by page. Their order is fixed when the filters are set: samples that
// are decided afterwards are marked and keep their place.

import { get, picture } from "/page/api.js";

const PAGE = 60;
export const SMALL = 240;
export const LARGE = 1000;

export class Samples {
  constructor(filters) {
    this.filters = filters;
    this.size = 0;
    this.asOf = null;
    this.samples = new Map(); // by position
    this.positions = new Map(); // by index
    this.pages = new Map();
  }

  async open(position) {
    await this.page(0);
    const wanted = Math.min(position, Math.max(this.size - 1, 0));
    await this.load(wanted);
    return wanted;
  }

  at(position) {
    return this.samples.get(position);
  }

  find(index) {
    return this.samples.get(this.positions.get(index));
  }

  async load(position) {
    await this.page(Math.floor(position / PAGE));
    return this.at(position);
  }

  page(number) {
    if (!this.pages.has(number)) {
      const loading = this.fetch(number);
      this.pages.set(number, loading);
      loading.catch(() => this.pages.delete(number));
    }
    return this.pages.get(number);
  }

  async fetch(number) {
    const start = number * PAGE;
    const found = await get("/api/samples", { ...this.filters, as_of: this.asOf, start, count: PAGE });
    this.asOf = found.as_of;
    this.size = found.num_samples;
    found.samples.forEach((sample, offset) => {
      this.samples.set(start + offset, sample);
      this.positions.set(sample.index, start + offset);
    });
  }
}

// Full samples and their images: fetched before they are needed; a limited number is cached.
export class Details {
  constructor(hasPictures) {
    this.hasPictures = hasPictures;
    this.found = new Map();
  }

  of(index) {
    let entry = this.found.get(index);
    if (!entry) {
      entry = { whole: get(`/api/samples/${index}`), image: this.hasPictures ? this.image(index) : null };
      entry.whole.then((whole) => (entry.ready = whole), () => this.found.delete(index));
      this.found.set(index, entry);
      if (this.found.size > 24) this.found.delete(this.found.keys().next().value);
    }
    return entry;
  }

  image(index) {
    const image = new Image();
    image.src = picture(index, LARGE);
    image.decode?.().catch(() => {}); // errors are handled where the image is shown
    return image;
  }
}
