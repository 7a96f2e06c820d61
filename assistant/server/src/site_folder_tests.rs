use super::*;

const FILERS: &str = "---\nid: our-filers\ntitle: Our filers\n---\n## Do\n- Call the storage team.\n";
const WORDS_TEXT: &str = "[metrics]\n\"oomph\" = \"gpu_power\"\n";

struct Site {
    folder: tempfile::TempDir,
    catalogue: Arc<Catalogue>,
    knowledge: Arc<LiveKnowledge>,
}

impl Site {
    fn new(words: &str, runbooks: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(RUNBOOKS)).unwrap();
        let site = Self {
            folder,
            catalogue: Arc::new(Catalogue::builtin().unwrap()),
            knowledge: Arc::new(LiveKnowledge::new(sightline_tools::builtin_knowledge())),
        };
        site.write(WORDS, words);
        for (name, text) in runbooks {
            site.write(&format!("{RUNBOOKS}/{name}"), text);
        }
        site
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn start(&self) -> Result<SiteWatch, SiteError> {
        let words = Arc::new(LiveWords::new(Arc::clone(&self.catalogue)).unwrap());
        SiteWatch::start(self.folder.path(), Arc::clone(&self.catalogue), words, Arc::clone(&self.knowledge))
    }
}

#[test]
fn the_folders_texts_stand_beside_ours() {
    let site = Site::new(WORDS_TEXT, &[("filers.md", FILERS), ("README.txt", "not read")]);
    let folder = SiteFolder::read(site.folder.path()).unwrap();
    let own = folder.own(&site.catalogue).unwrap();
    assert!(own.knowledge.get("runbook/our-filers").is_some_and(|entry| entry.of_site));
    assert_eq!((own.words.phrases(), folder.runbooks()), (1, 1));
    assert_eq!(own.knowledge.entries().len(), Knowledge::builtin().entries().len() + 1);
}

#[test]
fn every_fault_is_told_by_its_file_and_nothing_is_taken() {
    let site = Site::new("[metrics]\n\"oomph\" = \"no_such\"\n", &[("filers.md", FILERS), ("broken.md", "# notes")]);
    let error = site.start().map(drop).unwrap_err().to_string();
    assert!(
        error.contains("`words.toml`: `oomph`") && error.contains("`runbooks/broken.md`: it must begin"),
        "{error}"
    );
    let nowhere = SiteFolder::read(Path::new("/nowhere/at/all")).unwrap_err().to_string();
    assert!(nowhere.contains("`site.dir`") && nowhere.contains("/nowhere/at/all"), "{nowhere}");
    assert_eq!(
        SiteFolder::read(tempfile::tempdir().unwrap().path()),
        Ok(SiteFolder::default()),
        "either part may be missing"
    );
}

#[tokio::test]
async fn a_change_is_taken_and_a_bad_file_leaves_the_last_good_one() {
    let site = Site::new(WORDS_TEXT, &[("filers.md", FILERS)]);
    let mut watch = site.start().unwrap();
    assert_eq!(watch.look().await, SiteLook::Unchanged);
    site.write("runbooks/second.md", &FILERS.replace("our-filers", "second"));
    assert_eq!(watch.look().await, SiteLook::Taken);
    site.write("words.toml", "[metrics\n");
    assert_eq!(watch.look().await, SiteLook::Refused);
    assert_eq!(watch.look().await, SiteLook::Unchanged, "told once");
    assert_eq!(watch.in_force.runbooks(), 2, "what was in force stays");
    site.write("words.toml", WORDS_TEXT);
    assert_eq!(watch.look().await, SiteLook::Unchanged, "what was refused is gone");
    site.write("words.toml", "");
    assert_eq!(watch.look().await, SiteLook::Taken);
}
